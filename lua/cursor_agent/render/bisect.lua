-- Finds a place in a long ordered list without walking over it.

local M = {}

---The last number up to `count` for which something holds that holds for all before it; 0 when it holds for none.
---@param count integer
---@param holds fun(number: integer): boolean
---@return integer
function M.last(count, holds)
  local low, high = 0, count
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if holds(middle) then
      low = middle
    else
      high = middle - 1
    end
  end
  return low
end

return M
