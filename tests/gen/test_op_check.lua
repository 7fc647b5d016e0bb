-- op_check finds every kind of fault: a probe kernel is built with each, and the line that is printed names it.
--   lua5.4 test_op_check.lua PROBE_CHECK PROBE_CHECK_SAN ARGS

local program, sanitized, args = arg[1], arg[2], arg[3]
local failed, passed = 0, 0

local function expect(who, fault, want, exit)
  local command = string.format("'%s' %s --op fault_probe --params fault=%s --seconds 3 2>/dev/null", who, args, fault)
  local p = assert(io.popen(command))
  local text = p:read("a")
  local ok, _, code = p:close()
  if (ok and 0 or code) == exit and text:find(want, 1, true) then
    passed = passed + 1
  else
    failed = failed + 1
    io.stderr:write(string.format("FAIL %s: expected exit %d and '%s', found %s and\n%s\n", fault, exit, want, tostring(ok and 0 or code), text))
  end
end

local name = "FAIL fault_probe_n33_scalar_"
expect(program, "none", "1 passed, 0 failed", 0)
expect(program, "value", name .. "value: rows 2, seqs 1, past 0, parts 1: y[65] of 66: expected ", 1)
expect(program, "unwritten", "y[33] of 66: expected ", 1)
expect(program, "outside", "y: written outside of its 264 bytes", 1)
expect(program, "input", "x: an input was written", 1)
expect(program, "crash", name .. "crash: ended by signal ", 1)
expect(program, "hang", name .. "hang: ended by signal 14 ", 1)
expect(program, "unstable", "rows 2, parts 1: two runs differ", 1)
expect(program, "team", "rows 2: teams of 1 and 3 differ, though canonical", 1)
expect(program, "warning", "does not compile", 1)
expect(program, "beyond", "1 passed, 0 failed", 0)
expect(sanitized, "none", "1 passed, 0 failed", 0)
expect(sanitized, "beyond", name .. "beyond: ended with status 1", 1)

-- Wrong usage: status 2 and one line, before anything is built.
local function refuse(words, want)
  local p = assert(io.popen(string.format("'%s' %s %s 2>&1", program, args, words)))
  local text = p:read("a")
  local _, _, code = p:close()
  if code == 2 and text:find("^op_check: [^\n]+\n$") and text:find(want, 1, true) then
    passed = passed + 1
  else
    failed = failed + 1
    io.stderr:write(string.format("FAIL %s: expected exit 2 and '%s', found %s and\n%s\n", words, want, code, text))
  end
end

refuse("--card cuda:sm_5", "card 'cuda:sm_5': expected cuda:sm_CC")
refuse("--card cpu:z80", "card 'cpu:z80': expected cpu:PATH")
refuse("--card cpu:avx2 --card cuda:sm_70", "expected cards of one kind")
refuse("--sample -5", "--sample: expected 0..100000, found '-5'")
refuse("--sample ''", "found ''")
refuse("--seconds x", "--seconds: expected 1..86400, found 'x'")
refuse("--seconds 0", "found '0'")
refuse("--jobs -1", "--jobs: expected 1..16, found '-1'")
refuse("--jobs 99999999999999999999", "--jobs: expected 1..16")
refuse("--per-shape 2.5", "found '2.5'")
refuse("--part 0/0", "--part: expected I/N")
refuse("--part 1/2x", "found '1/2x'")
refuse("--seed 18446744073709551616", "--seed: expected a whole number below 2^64")
refuse("--seed", "--seed: expected a value")
refuse("--op fault_probe,nothing", "found 'nothing'")
refuse("--shape n=33", "go with --op")
refuse("--fly", "unknown option '--fly'")

-- A CPU's key: its paths run here, where this machine has them.
args = args .. " --card cpu:scalar,t=2"
expect(program, "none", "1 passed, 0 failed, 0 compiled only", 0)
expect(program, "crash", name .. "crash: ended by signal ", 1)

io.stdout:write(string.format("%d passed, %d failed\n", passed, failed))
os.exit(failed == 0)
