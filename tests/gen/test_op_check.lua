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

io.stdout:write(string.format("%d passed, %d failed\n", passed, failed))
os.exit(failed == 0)
