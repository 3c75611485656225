//! Reads and writes files on disk for agents, one at a time per file, in the order of the requests.

use engine::effect::DiskOp;
use engine::ids::EditorId;
use engine::policy::paths;

use super::Driver;
use crate::disk;
use crate::error::{Error, Problem};
use crate::links;

pub(super) struct DiskJob {
    pub(super) request: EditorId,
    pub(super) op: DiskOp,
    /// What its path resolved to when it was judged.
    pub(super) real: Option<String>,
    pub(super) encodings: Vec<String>,
}

impl Driver {
    /// Works off the queue of one file.
    pub(super) async fn work_off(&self, path: String) {
        loop {
            let job = {
                let mut state = self.shared.state.lock();
                let Some(queue) = state.disk.get_mut(&path) else {
                    return;
                };
                let Some(job) = queue.front_mut().and_then(Option::take) else {
                    state.disk.remove(&path);
                    return;
                };
                job
            };
            let (request, op, encodings) = (job.request, job.op, job.encodings);
            let done = tokio::task::spawn_blocking(move || {
                leads_there(&op, job.real.as_deref())?;
                match op {
                    DiskOp::Read { path, line, limit } => {
                        disk::read(&path, line, limit, &encodings)
                    }
                    DiskOp::Write { path, content } => {
                        disk::write(&path, &content, &encodings).map(|()| String::new())
                    }
                }
            });
            let done = done.await.unwrap_or_else(|error| Err(error.into()));
            let done = done.map_err(|error| error.of_file());
            self.with(|engine| engine.on_file_done(request, done));
            if let Some(queue) = self.shared.state.lock().disk.get_mut(&path) {
                queue.pop_front();
            }
        }
    }
}

/// Whether a path still resolves to what was judged: a link may have been planted since.
fn leads_there(op: &DiskOp, real: Option<&str>) -> Result<(), Error> {
    let (DiskOp::Read { path, .. } | DiskOp::Write { path, .. }) = op;
    match real {
        Some(real) if paths::resolve(path, &links::Real) != real => Err(Error::File {
            path: path.clone(),
            problem: Problem::LeadsElsewhere,
        }),
        _ => Ok(()),
    }
}
