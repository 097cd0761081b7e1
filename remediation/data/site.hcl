# The remedy of a site's own rules.

remedy "site.rule" {
  title    = "Bring {rig} to the site's rule: {message}"
  title_zh = "让 {rig} 符合本站规则：{message}"
  params   = { message = "see its message in rigs.hcl" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl {rig}"

  step {
    text    = "Change on {rig} what the rule names: {message}."
    text_zh = "在 {rig} 上修改规则所指的内容：{message}。"
    hand    = true
  }
  step {
    text    = "See the facts that the rule compared; its paths start with host, as facts do here. Run this where preflight runs."
    text_zh = "看规则比较的数据；其路径与 facts 一样以 host 开头。在运行 preflight 的机器上执行。"
    command = "preflight check -i rigs.hcl --format json {rig}"
  }
  step {
    text    = "If the rule asks too much, change its assert in the profile, in rigs.hcl."
    text_zh = "若规则要求过高，在 rigs.hcl 的配置档中修改它的 assert。"
    hand    = true
  }
}
