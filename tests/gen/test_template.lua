-- The template engine: exact text, and errors that name the template's file and line.
--   lua5.4 test_template.lua SOURCE_DIR

package.path = arg[1] .. "/?.lua"
local template = require "gen.template"
local lib = require "gen.lib"
local prune = require "gen.prune"
local simplify = require "gen.simplify"
local tidy = require "gen.tidy"
local failed, passed = 0, 0

local function check(what, want, got)
  if want == got then
    passed = passed + 1
  else
    failed = failed + 1
    io.stderr:write("FAIL ", what, "\n  expected ", string.format("%q", want), "\n  found    ", string.format("%q", tostring(got)), "\n")
  end
end

-- Renders files given as { name = text }; t.in is the template.
local function render(files, names)
  names = names or {}
  names.lib = names.lib or lib
  names.ipairs = ipairs
  return template.render("t.in", names, function(name) return files[name] end)
end
local function text(what, source, names, want) check(what, want, render({ ["t.in"] = source }, names)) end
local function refuses(what, source, names, want, files)
  files = files or {}
  files["t.in"] = source
  local ok, err = pcall(render, files, names)
  check(what, want, ok and "no error" or tostring(err))
end

-- text
text("plain text is copied", "int x = 1;\n# define A \\\n \"s\" %d\n", nil, "int x = 1;\n# define A \\\n \"s\" %d\n")
text("a value", "f(${n}, ${n * 2 + 1});\n", { n = 4 }, "f(4, 9);\n")
text("braces in a value", "${({ a = 'x' }).a}{${'{'..'}'}}\n", nil, "x{{}}\n")
text("a lone $ is text", "cost: $5 and $\n", nil, "cost: $5 and $\n")
text("a value first on its line", "  ${n}\n", { n = 7 }, "  7\n")
text("a loop", "$for i = 0, 2 do\n    s += v[${i}];\n$end\n", nil, "    s += v[0];\n    s += v[1];\n    s += v[2];\n")
text("indented Lua", "  $  if n > 1 then\na\n  $else\nb\n$ end\n", { n = 1 }, "b\n")
text("a Lua comment is dropped", "$-- note\na\n", nil, "a\n")
text("a statement over two lines", "$local t = { 1,\n$            2 }\n${t[2]}\n", nil, "2\n")
text("blank lines are squeezed", "\n\na\n\n\n\nb {\n\n  c\n\n}\n\n", nil, "a\n\nb {\n  c\n}\n")
text("trailing blanks are dropped", "a  \nb\t\n", nil, "a\nb\n")
text("no newline at the end", "a", nil, "a\n")
text("quotes and percent in text", "\"%s\" '\\n'\n", nil, "\"%s\" '\\n'\n")
check("include sees locals and gives some",
  "1 2\n3\n", render { ["t.in"] = '$local a = 1\n$include "p.in"\n${b}\n', ["templates/p.in"] = "${a} 2\n$local b = 3\n" })
check("f32", "0.1f 1.0f 1e+10f -0.5f", table.concat({ lib.f32(0.1), lib.f32(1), lib.f32(1e10), lib.f32(-0.5) }, " "))

-- pruning
local helpers = "typedef int vi;\n/* one */\nstatic inline vi a(vi x) { return x; }\nstatic inline int b(int x)\n{\n    return a(x);\n}\n"
check("used through another", helpers .. "int f(void) { return b(1); }\n", prune(helpers .. "int f(void) { return b(1); }\n"))
check("one of two stays, with the comment",
  "typedef int vi;\n/* one */\nstatic inline vi a(vi x) { return x; }\nint f(void) { return a(1); }\n", prune(helpers .. "int f(void) { return a(1); }\n"))
check("all go, comment and type too", "\nint f(void) { return 1; }\n", prune(helpers .. "\nint f(void) { return 1; }\n"))
check("a name in a comment is no use", "\n/* a b */\nint f(void) { return 1; }\n", prune(helpers .. "\n/* a b */\nint f(void) { return 1; }\n"))

-- errors
refuses("misspelt name", "a\nb\nx${vce}\n", { vec = 1 }, "t.in:3: 'vce' is not set")
refuses("misspelt name in Lua", "a\n$if vce then\n$end\n", nil, "t.in:2: 'vce' is not set")
refuses("a new global", "a\n$n = 3\n", nil, "t.in:2: 'n' is not local")
refuses("Lua syntax", "a\n\n$for i = 1 2 do\n$end\n", nil, "t.in:3: ',' expected near '2'")
refuses("syntax in a value", "a\n${1 +}\n", nil, "t.in:2: unexpected symbol near ')'")
refuses("missing end", "a\n$if true then\nb\n", nil, "t.in:3: 'end' expected (to close 'if' at t.in:2) near <eof>")
refuses("unclosed value", "a\n  ${n\n", nil, "t.in:2: '${' is not closed")
refuses("empty value", "${ }\n", nil, "t.in:1: '${}' is empty")
refuses("nil value", "\n${lib.nothing}\n", nil, "t.in:2: 'lib.nothing' is nil")
refuses("float value", "${n / 2}\n", { n = 4 }, "t.in:1: 'n / 2' is a float (// divides integers, lib.f32 writes a constant)")
refuses("run time error", "a\n$local x = nil + 1\n", nil, "t.in:2: attempt to perform arithmetic on a nil value")
refuses("missing include", 'a\n$include "q.in"\n', nil, "t.in:2: no template 'templates/q.in'")
refuses("error in an include", '$local a = 1\n$include "p.in"\nb\n', nil, "templates/p.in:2: 'nope' is not set", { ["templates/p.in"] = "x\n${nope}\n" })
refuses("error after an include", '$include "p.in"\n${nope}\n', nil, "t.in:2: 'nope' is not set", { ["templates/p.in"] = "x\ny\nz\n" })
refuses("include of itself", '$include "p.in"\n', nil, "templates/p.in:1: includes nest deeper than 8", { ["templates/p.in"] = '$include "p.in"\n' })
refuses("no pairs", "$for k in pairs({}) do\n$end\n", nil, "t.in:1: 'pairs' is not set")
refuses("unknown part of vec.c.in", "$lib.vec_parts { expo = true }\n", nil, "vec.c.in has no part 'expo'")

-- simplify
local function simple(before, after) check("simplify " .. before, after .. "\n", simplify(before .. "\n")) end
simple("vload(x + i + j * 1);", "vload(x + i + j);")
simple("i64 seq = u / 6, h = u / 1 % 6, j = u % 1 * 128;", "i64 seq = u / 6, h = u % 6, j = 0;")
simple("const f32 *q = c + (h % 1) * 8;", "const f32 *q = c;")
simple("f(x + 0, 2);", "f(x, 2);")
simple("n = (rows + 1 * slabs - 1) / (1 * slabs) * 1;", "n = (rows + slabs - 1) / slabs;")
simple("y = x * 1.0f + 1 / 10 + u % 16 + j * 12 + 0x7C00 + p->k * 1u;", "y = x * 1.0f + 1 / 10 + u % 16 + j * 12 + 0x7C00 + p->k * 1u;")
simple("x = 1.0 / z; f(0); while (0) g(10 * 8);", "x = 1.0 / z; f(0); while (0) g(10 * 8);")
simple("x = y * 1; /* y * 1 */", "x = y; /* y * 1 */")
simple("/* a\n * j * 1 */\nx = y * 1;", "/* a\n * j * 1 */\nx = y;")

-- tidy
local function tidies(what, before, after) check("tidy: " .. what, after, tidy(before)) end
local long = string.rep("word ", 30)
tidies("functions and types apart, groups together", "typedef int a;\ntypedef int b;\nstatic inline a f(a x) { return x; }\n" ..
  "static inline a g(a x) { return x; }\n/* h */\nstatic a h(a x)\n{\n    return x;\n}\nvoid k(a x)\n{\n}\n",
  "typedef int a;\ntypedef int b;\n\nstatic inline a f(a x) { return x; }\nstatic inline a g(a x) { return x; }\n\n" ..
  "/* h */\nstatic a h(a x)\n{\n    return x;\n}\n\nvoid k(a x)\n{\n}\n")
tidies("a header's first line", "/* name: " .. long .. "end.\n", "/* name: " .. string.rep("word ", 24):sub(1, -2) .. "\n *     " ..
  string.rep("word ", 6) .. "end.\n")
tidies("after a comma", "/* f\n *   x: " .. string.rep("word ", 22) .. "and, " .. "more words */\n",
  "/* f\n *   x: " .. string.rep("word ", 22) .. "and,\n *     more words */\n")
tidies("the command whole", "/* f\n * made by: " .. long .. "*/\n", "/* f\n * made by: " .. long .. "*/\n")
tidies("a long name", "void " .. string.rep("n", 110) .. "(const struct args *a, struct team *t)\n",
  "void " .. string.rep("n", 110) .. "(\n    const struct args *a, struct team *t)\n")

io.stdout:write(string.format("%d passed, %d failed\n", passed, failed))
os.exit(failed == 0)
