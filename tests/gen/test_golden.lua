-- One emitted kernel of every op, byte for byte, and what quarry-gen answers to wrong questions.
--   lua5.4 test_golden.lua QUARRY_GEN HERE [--update]
-- golden.txt: op, shape, params, one kernel a line; the text lies in golden/OP.c, with a fourth word, a card with CUDA, in golden/OP.cu.
-- --update writes the texts anew: read the diff.

local program, here, update = arg[1], arg[2], arg[3] == "--update"
local failed, passed = 0, 0

local function run(args)
  local p = assert(io.popen("'" .. program .. "' " .. args .. " 2>&1"))
  local text = p:read("a")
  local ok, _, code = p:close()
  return text, ok and 0 or code
end

local function report(ok, what, ...)
  if ok then
    passed = passed + 1
  else
    failed = failed + 1
    io.stderr:write("FAIL ", what, ": ", string.format(...), "\n")
  end
end

local function read(path)
  local f = io.open(path, "rb")
  local text = f and f:read("a")
  if f then f:close() end
  return text
end

local function write(path, text)
  local f = assert(io.open(path, "wb"))
  assert(f:write(text))
  f:close()
end

-- The first line that differs, for a message.
local function first_difference(want, got)
  local a, b, n = want:gmatch("([^\n]*)\n?"), got:gmatch("([^\n]*)\n?"), 0
  repeat
    n = n + 1
    local x, y = a(), b()
    if x ~= y then return string.format("line %d: expected '%s', found '%s'", n, x or "the end", y or "the end") end
  until not x
  return "equal"
end

-- Helpers of the prelude that the text defines and does not use.
local function unused(text)
  local code, count, list = text:gsub("/%*.-%*/", ""), {}, {}
  for word in code:gmatch("[%a_][%w_]*") do count[word] = (count[word] or 0) + 1 end
  for name in code:gmatch("static inline [%w_ ]-%*?([%w_]+)%(") do list[#list + 1] = count[name] < 2 and name or nil end
  for name in code:gmatch("typedef %w+ ([%w_]+)") do list[#list + 1] = count[name] < 2 and name or nil end
  return table.concat(list, " ")
end

local function path_of(op, card) return here .. "/golden/" .. op .. (card and ".cu" or ".c") end

local function golden(op, shape, params, card)
  local path = path_of(op, card)
  local args = string.format("%s --card %s --shape %s --params %s", op, card or "sapphirerapids", shape, params)
  local text, code = run(args)
  report(code == 0, op, "%s", text)
  if code ~= 0 then return end
  report(text == run(args), op, "two runs print different texts")
  report(not text:find("/home/", 1, true) and not text:find("[ \t]\n"), op, "a path or trailing blanks in the text")
  report(unused(text) == "", op, "defined and not used: %s", unused(text))
  if update then write(path, text) end
  local want = read(path)
  report(want ~= nil, op, "no %s; --update writes it", path)
  if want then report(want == text, op, "%s", first_difference(want, text)) end
end

-- The kernel's own header tells how to print it: that command gives the same text.
local function remakes(op, card)
  local text = read(path_of(op, card)) or ""
  local command = text:match("quarry%-gen ([^\n*]+)")
  report(command ~= nil, op, "its header names no quarry-gen command")
  if command then report(run(command .. (card and "" or " --card sapphirerapids")) == text, op, "'quarry-gen %s' prints another text", command) end
end

local function answers(args, code, want)
  local text, got = run(args)
  report(got == code and text:find(want, 1, true), args, "expected exit %d and '%s', found %d and '%s'", code, want, got, text)
end

local listed = {}
for line in io.lines(here .. "/golden.txt") do
  local op, shape, params, card = line:match("^(%S+)%s+(%S+)%s+(%S+)%s*(%S*)$")
  card = card ~= "" and card or nil
  if op and op:sub(1, 1) ~= "#" then
    listed[op] = true
    golden(op, shape, params, card)
    remakes(op, card)
  end
end
-- An op without a kernel for a CPU has no text here.
local function on_cpu(op) return read(here .. "/../../templates/" .. op .. "/kernel.c.in") ~= nil end
for op in run("--list"):gmatch("%S+") do
  local hash = run("--hash " .. op)
  report(hash:match("^%x+\n$") and #hash == 65, op, "its hash is '%s'", hash)
  report(listed[op] or not on_cpu(op), op, "golden.txt lists no kernel of it")
end

answers("rmsnorm --shape n=64,out=f32 --card cpu:avx2 --params isa=avx512vnni", 1,
  "quarry-gen: rmsnorm n=64,out=f32 with isa=avx512vnni,fma=hw: refused: required: the card has the instruction path")
answers("rmsnorm --shape n=100,out=q8 --card cpu:avx2", 1, "refused: required: out as int8 needs whole blocks of 32")
answers("rmsnorm --shape n=64,out=f32 --card cpu:sse42 --params fma=none --numerics strict", 1, "strict numerics admit the canonical class alone")
answers("rmsnorm --shape n=64,out=f32 --card cpu:sse42 --numerics strict", 0, "fma=soft")
answers("rmsnorm --shape n=64 --card zen4", 2, "rmsnorm: shape 'n=64' lacks out; expected --shape n=N,out=f32|q8|both")
answers("matmul --shape n=64 --card zen4", 2, "lacks type, act, layout, k, epi; expected --shape type=q8_0|")
answers("rmsnorm", 2, "quarry-gen: rmsnorm: expected --shape n=N,out=f32|q8|both\n")
answers("foo", 2, "op 'foo': expected one of ")
answers("rmsnorm --shape 'n=64, out=f32' --card zen4", 2, "rmsnorm: shape 'n=64, out=f32': no blanks allowed")
answers("layout --shape type=f32,n=64,k=64 --card zen4", 1, "quarry-gen: layout: a choice of weight layout, it has no kernel\n")
answers("layout", 1, "quarry-gen: layout: a choice of weight layout, it has no kernel\n")
answers("layout --space --shape type=f32,n=64,k=64 --card zen4", 0, "legal   layout=rows")
answers("rmsnorm --shape n=64,out=f32,m=3 --card zen4", 2, "rmsnorm: shape has no 'm'")
answers("rmsnorm --shape n=64,n=64,out=f32 --card zen4", 2, "rmsnorm: shape names 'n' twice")
answers("rmsnorm --shape n=64,out=f16 --card zen4", 2, "rmsnorm: out is 'f16', expected one of f32 q8 both")
answers("rmsnorm --shape n=64,out --card zen4", 2, "expected name=value at 'out'")
answers("nothing --shape n=64 --card zen4", 2, "op 'nothing': expected one of ")
answers("../gen --shape n=64 --card zen4", 2, "op '../gen': expected one of ")
answers("rmsnorm --shape n=64,out=f32 --card zen9", 2,
  "card 'zen9': expected a key (cpu:... or cuda:...), a name that quarry-gen --cards lists, or a file NAME.lua")
answers("rmsnorm --shape n=64,out=f32 --card cpu:amd-25-17,isa=avx3", 2, "'avx3' is no instruction path")
answers("rmsnorm --shape n=64,out=f32 --card zen4 --numerics loose", 2, "numerics 'loose': expected strict, pinned, free or reference")
answers("rmsnorm --shape n=100,out=q8 --space --card cpu:avx2", 0, "pruned  isa=avx2,fma=hw: out as int8 needs whole blocks of 32")
answers("rmsnorm --shape n=64,out=f32 --card cuda:sm_5", 2, "quarry-gen: card 'cuda:sm_5': expected cuda:sm_CC,..., CC from 60\n")
answers("rmsnorm --shape n=64,out=f32 --card cuda:sm_70,sms=9999999", 2, "expected sms=1..1024, found 9999999\n")
answers("rmsnorm --bogus", 2, "unknown option '--bogus'")
answers("rmsnorm --shape", 2, "--shape: expected a value")
answers("", 2, "usage: quarry-gen OP")

io.stdout:write(string.format("%d passed, %d failed\n", passed, failed))
os.exit(failed == 0)
