# The remedy of a site's own rules.

remedy "site.rule" {
  title  = "Bring {rig} to the site's rule: {message}"
  params = { message = "see its message in rigs.hcl" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl {rig}"

  step {
    text = "Change on {rig} what the rule names: {message}."
    hand = true
  }
  step {
    text    = "See the facts that the rule compared; its paths start with host, as facts do here. Run this where preflight runs."
    command = "preflight check -i rigs.hcl --format json {rig}"
  }
  step {
    text = "If the rule asks too much, change its assert in the profile, in rigs.hcl."
    hand = true
  }
}
