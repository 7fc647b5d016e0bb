-- What a card can do at best, for percent of roof and for telling what is fused off: a call of CEILING_LOOPS loops, or
-- CEILING_PASSES over CEILING_BYTES.
local MADDS = { dp4a = 1 << 18, hfma2 = 1 << 17, ffma = 1 << 16, mma_f16 = 1 << 20, mma_i8 = 1 << 21, read = 0 }
local NEEDS = { dp4a = "dp4a", hfma2 = "half", mma_f16 = "mma_f16_884", mma_i8 = "mma_i8" }
local FORM_NEEDS = { m8n8k4 = "mma_f16_884", m16n8k8 = "mma_f16", m16n8k16 = "mma_f16_16", m8n8k16 = "mma_i8", m16n8k32 = "mma_i8_32" }
local FORMS = { mma_f16 = { "m16n8k16", "m16n8k8", "m8n8k4" }, mma_i8 = { "m16n8k32", "m8n8k16" } }

local function forms_of(p) return FORMS[p.what] or { "plain" } end

local function is_form_of(p)
  for _, f in ipairs(forms_of(p)) do
    if f == p.form then return true end
  end
  return false
end

return {
  shape   = { { "what", { "dp4a", "hfma2", "ffma", "mma_f16", "mma_i8", "read" } } },
  params  = {},
  require = { { "a card: the runtime measures a CPU's ceilings itself", function() return false end } },
  default = function() return {} end,
  bytes   = function(p) return p.what == "read" and 8 << 30 or 0 end,
  ops     = function(p) return 2 * (MADDS[p.what] << 20) end,
  cuda    = {
    params  = { { "form", { "plain", "m8n8k4", "m16n8k8", "m16n8k16", "m8n8k16", "m16n8k32" } }, { "threads", { 128, 256, 512 } },
                { "per_sm", { 2, 4, 8 } } },
    require = {
      { "matrix instructions have a form, nothing else has", is_form_of },
      { "a multiprocessor of any card holds 1024 threads, and all blocks must run at once",
        function(p) return p.threads * p.per_sm <= 1024 end },
      lib.card_has("the card has the instruction", function(p) return FORM_NEEDS[p.form] or NEEDS[p.what] end),
    },
    default = function(p, card)
      local forms = forms_of(p)
      local form = forms[#forms]
      for i = #forms, 1, -1 do
        if card.has[FORM_NEEDS[forms[i]]] then form = forms[i] end
      end
      return { form = form, threads = 256, per_sm = 4 }
    end,
    launch  = function(p, card) return { threads = p.threads, grid = { { card.sms * p.per_sm } } } end,
  },
}
