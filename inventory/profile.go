package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// defaultProfile exists without being declared. A block of this name changes what every rig starts from.
const defaultProfile = "default"

// profiles decodes every profile, then resolves what each extends.
func (b *builder) profiles() {
	own := map[string]*Profile{}
	nodes := map[string]*node{}
	first := map[string]hcl.Range{}
	b.each("profile", func(schema *block, syntax *hclsyntax.Block, label string) {
		n := b.decode(schema, syntax.Body, label, syntax.DefRange(), b.ctx)
		if b.named(syntax, label, first) {
			own[label], nodes[label] = b.profile(n), n
		}
	})
	if own[defaultProfile] == nil {
		own[defaultProfile] = &Profile{Name: defaultProfile}
	}
	names := sortedKeys(own)
	for _, name := range names {
		if merged, ok := b.resolve(own, nodes, name, nil); ok {
			b.inv.Profiles[name] = merged
			b.checkMerged(merged, nodes[name])
		}
	}
	if b.inv.Profiles[defaultProfile] == nil {
		b.inv.Profiles[defaultProfile] = &Profile{Name: defaultProfile}
	}
}

func (b *builder) profile(n *node) *Profile {
	p := &Profile{
		Name: n.label, Extends: n.text("extends"), PSUMargin: n.floatPtr("psu_margin"), PSUNote: n.floatPtr("psu_note"),
		AllowX8: n.boolPtr("allow_x8"), Cores: n.intPtr("cores"), RAMPerCard: n.floatPtr("ram_per_card_gib"),
		StorageTB: n.floatPtr("storage_tb"), FreeSlots: n.intPtr("free_slots"), MainsLoad: n.floatPtr("mains_load"),
		NCCLPass: n.floatPtr("nccl_pass"), NCCLWarn: n.floatPtr("nccl_warn"), RequireP2P: n.boolPtr("require_p2p"),
		BurnHot: n.floatPtr("burn_hot"), BurnWarm: n.floatPtr("burn_warm"), BurnSpread: n.floatPtr("burn_spread"), BurnSag: n.floatPtr("burn_sag"), BurnLoad: n.floatPtr("burn_load"),
		FitMargin: n.floatPtr("fit_margin"), FitBusy: n.floatPtr("fit_busy"), FitOverlap: n.floatPtr("fit_overlap"), FitEfficiency: n.floatPtr("fit_efficiency"),
		Require: n.texts("require"), Acceptance: n.boolPtr("acceptance"), Range: n.header,
	}
	first := map[string]hcl.Range{}
	for _, c := range n.blocks["check"] {
		if problem := nameProblem(c.label); problem != "" {
			b.fault(c.header, "Invalid name", "%s.", problem)
			continue
		}
		if at, dup := first[c.label]; dup {
			b.fault(c.header, "Duplicate check", "check %q is declared at %s already.", c.label, Position(at))
			continue
		}
		first[c.label] = c.header
		if c.exprs["assert"] == nil {
			continue // reported as missing
		}
		r := SiteRule{Name: c.label, Assert: c.exprs["assert"], Message: c.text("message"), Range: c.header, scope: b.ctx}
		b.diags = append(b.diags, enrich(r.verify(b.opts.HostType))...)
		p.Rules = append(p.Rules, r)
	}
	return p
}

// resolve merges a profile with what it extends; path holds the profiles that led here.
func (b *builder) resolve(own map[string]*Profile, nodes map[string]*node, name string, path []string) (*Profile, bool) {
	p := own[name]
	base := p.Extends
	if base == "" && name != defaultProfile {
		base = defaultProfile
	}
	if base == "" {
		return p, true
	}
	if own[base] == nil {
		b.fault(nodes[name].where("extends"), "Unknown profile", "Profile %q extends %q, which is not declared.%s", name, clip(base), didYouMean(base, sortedKeys(own)))
		return nil, false
	}
	path = append(path, name)
	if i := slices.Index(path, base); i >= 0 {
		// Every member meets the circle; the first by name reports it, for all.
		if circle := path[i:]; i == 0 && slices.Min(circle) == base {
			b.fault(nodes[name].where("extends"), "Profiles in a circle", "Profile %q extends itself: %s → %s.", base, strings.Join(circle, " → "), base)
		}
		return nil, false
	}
	under, ok := b.resolve(own, nodes, base, path)
	if !ok {
		return nil, false
	}
	return mergeProfile(under, p), true
}

// mergeProfile lays a profile over another. Rules are joined; a rule of the same name replaces.
func mergeProfile(under, over *Profile) *Profile {
	out := *over
	pick(&out.PSUMargin, under.PSUMargin)
	pick(&out.PSUNote, under.PSUNote)
	pick(&out.AllowX8, under.AllowX8)
	pick(&out.Cores, under.Cores)
	pick(&out.RAMPerCard, under.RAMPerCard)
	pick(&out.StorageTB, under.StorageTB)
	pick(&out.FreeSlots, under.FreeSlots)
	pick(&out.MainsLoad, under.MainsLoad)
	pick(&out.NCCLPass, under.NCCLPass)
	pick(&out.NCCLWarn, under.NCCLWarn)
	pick(&out.RequireP2P, under.RequireP2P)
	pick(&out.BurnHot, under.BurnHot)
	pick(&out.BurnWarm, under.BurnWarm)
	pick(&out.BurnSpread, under.BurnSpread)
	pick(&out.BurnSag, under.BurnSag)
	pick(&out.BurnLoad, under.BurnLoad)
	pick(&out.FitMargin, under.FitMargin)
	pick(&out.FitBusy, under.FitBusy)
	pick(&out.FitOverlap, under.FitOverlap)
	pick(&out.FitEfficiency, under.FitEfficiency)
	pick(&out.Acceptance, under.Acceptance)
	if out.Require == nil {
		out.Require = under.Require
	}
	out.Rules = nil
	for _, r := range under.Rules {
		if !slices.ContainsFunc(over.Rules, func(o SiteRule) bool { return o.Name == r.Name }) {
			out.Rules = append(out.Rules, r)
		}
	}
	out.Rules = append(out.Rules, over.Rules...)
	return &out
}

func pick[T any](dst **T, under *T) {
	if *dst == nil {
		*dst = under
	}
}

// checkMerged judges what can be seen only after merging.
func (b *builder) checkMerged(p *Profile, n *node) {
	if n == nil {
		return
	}
	if p.PSUMargin != nil && p.PSUNote != nil && *p.PSUNote < *p.PSUMargin {
		b.fault(n.where("psu_note"), "Invalid value", "psu_note (%s) is below psu_margin (%s): what fails cannot pass with a note.", shown(*p.PSUNote), shown(*p.PSUMargin))
	}
	if p.NCCLPass != nil && p.NCCLWarn != nil && *p.NCCLWarn > *p.NCCLPass {
		b.fault(n.where("nccl_warn"), "Invalid value", "nccl_warn (%s) is above nccl_pass (%s).", shown(*p.NCCLWarn), shown(*p.NCCLPass))
	}
	if len(b.opts.CheckIDs) == 0 || !n.has("require") {
		return
	}
	known := slices.Clone(b.opts.CheckIDs)
	for _, r := range p.Rules {
		known = append(known, "site."+r.Name)
	}
	for _, id := range p.Require {
		if !slices.Contains(known, id) {
			b.fault(n.where("require"), "Unknown check", "There is no check %q.%s", clip(id), didYouMean(id, known))
		}
	}
}

// Profile finds a merged profile, for a choice made on the command line.
func (inv *Inventory) Profile(name string) (*Profile, error) {
	if p, ok := inv.Profiles[name]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("no profile %q is declared.%s", name, didYouMean(name, sortedKeys(inv.Profiles)))
}
