package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"preflight/checks"
	"preflight/internal/accept"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/lang"
	"preflight/internal/probe"
	"preflight/internal/remote"
	"preflight/internal/report"
	"preflight/inventory"
)

// acceptFlags are those of a hand-over, and of its verification.
type acceptFlags struct {
	check checkFlags

	key            string // signs
	answers        string // file of the answered checklist
	writeChecklist string

	verify         string
	allowedSigners string
	signer         string
}

func newAccept(env *environment) *cobra.Command {
	f := &acceptFlags{check: checkFlags{failOn: "fail", burn: usual}}
	c := &cobra.Command{
		Use:   "accept [RIG...]",
		Short: "Hand over a build: check everything, answer for what no tool sees, sign the result",
		Long: `accept checks rigs with every probe there is, takes the answers of hands and eyes, and writes a
bundle: report, snapshots, inventory, and a manifest of their SHA-256 signed with an SSH key. The
profile must say acceptance = true. Whoever gets the bundle can verify it, judge its snapshots
again, and compare the rigs on arrival: preflight check -i rigs.hcl --since BUNDLE.

--verify says whether a bundle is as it was signed, and by whom. Exit codes then: 0 intact and
signed by a signer who is allowed; 3 changed, or signed by somebody else; 4 intact, but nobody said
who may sign.`,
		Example: `  preflight accept -i rigs.hcl --write-checklist answers.txt
  preflight accept -i rigs.hcl --checklist answers.txt --key ~/.ssh/id_ed25519 -o build-17.tar.gz
  preflight accept --verify build-17.tar.gz --allowed-signers signers --signer ops@vendor.example`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.verify != "":
				return runVerify(env, f, args)
			case f.writeChecklist != "":
				return runChecklist(env, f, args)
			}
			return runAccept(cmd.Context(), env, f, args)
		},
	}
	fl := c.Flags()
	f.check.target.add(fl, false)
	f.check.output.add(fl)
	f.check.probing(fl)
	fl.Lookup("output").Usage = "the bundle: a folder, or a file that ends in .tar.gz (default preflight-accept-TIME.tar.gz)"
	fl.StringVar(&f.check.profile, "profile", "", "judge every rig by this profile of the inventory")
	fl.DurationVar(&f.check.probeLimit, "probe-timeout", probe.DefaultLimit, "deadline of one all-reduce on a rig")
	f.check.burn.named = "burn-in"
	fl.StringVar(&f.check.burn.duration, f.check.burn.named, "", "put all cards under load as well: full (30m), quick (3m), or a time; see probe burn-in")
	fl.StringVar(&f.key, "key", "", "SSH key that signs: a private key, or the .pub of one that the agent holds")
	fl.StringVar(&f.answers, "checklist", "", "the answered checklist of hands and eyes; without it a terminal is asked")
	fl.StringVar(&f.writeChecklist, "write-checklist", "", "only write the checklist to this file, to be answered with an editor")
	fl.StringVar(&f.verify, "verify", "", "verify this bundle instead")
	fl.StringVar(&f.allowedSigners, "allowed-signers", "", "who may sign, as ssh-keygen's ALLOWED SIGNERS")
	fl.StringVar(&f.signer, "signer", "", "who must have signed: a name of --allowed-signers, else a key as SHA256:… or a .pub file")
	return c
}

// resolve finds the rigs of a hand-over, and insists on a profile that judges one.
func (f *acceptFlags) resolve(env *environment, globs []string) (*target, error) {
	if f.check.target.inventory == "" {
		return nil, usage("a hand-over is judged against what was ordered: give the inventory, -i rigs.hcl")
	}
	t, err := f.check.target.resolve(env, globs, f.check.profile)
	if err != nil {
		return nil, err
	}
	for _, r := range t.rigs {
		if p := r.Profile; p == nil || p.Acceptance == nil || !*p.Acceptance {
			t.close()
			return nil, usage("%s: its profile does not judge a hand-over; write acceptance = true into the profile, or name one that has it with --profile", r.Name)
		}
	}
	return t, nil
}

// handed are the rigs with the items that somebody must answer for.
func handed(rigs []*inventory.Rig, l lang.Language) []accept.Rig {
	var out []accept.Rig
	for _, r := range rigs {
		cards := 8 // nobody said how many: then everything is asked
		if r.Cards != nil {
			cards = *r.Cards
		}
		a := accept.Rig{Name: r.Name}
		for _, text := range report.Checklist(cards) {
			a.Items = append(a.Items, accept.Item{Text: text, Said: l.Say(text)})
		}
		out = append(out, a)
	}
	return out
}

func runChecklist(env *environment, f *acceptFlags, globs []string) error {
	t, err := f.resolve(env, globs)
	if err != nil {
		return err
	}
	defer t.close()
	if _, err := os.Stat(f.writeChecklist); err == nil {
		return usage("%s is there already; answers in it are not overwritten", f.writeChecklist)
	}
	if err := writable(f.writeChecklist); err != nil {
		return err
	}
	list := accept.WriteChecklist(handed(t.rigs, env.lang()))
	return writeWhole(f.writeChecklist, func(w io.Writer) error { _, err := w.Write(list); return err })
}

func runAccept(ctx context.Context, env *environment, f *acceptFlags, globs []string) error {
	sel := checks.Selection{}
	out, err := f.place()
	if err != nil {
		return err
	}
	f.check.output.file = "" // -o is the bundle's; a format may have a file of its own
	sinks, err := f.check.output.sinks(env)
	if err != nil {
		return err
	}
	if err := f.check.validate(sel); err != nil {
		return err
	}
	sel.Asked = f.check.burn.asked(f.check.burnOpt)
	t, err := f.resolve(env, globs)
	if err != nil {
		return err
	}
	defer t.close()
	key, keyCloser, err := f.signingKey(env)
	if err != nil {
		return err
	}
	defer func() { _ = keyCloser.Close() }()
	answers, err := f.answered(env, t.rigs)
	if err != nil {
		return err
	}
	run := f.check.judge(ctx, env, t, sel, f.check.options(sel))
	if len(answers.Refused()) > 0 && run.code != checks.ExitInterrupted {
		run.code = checks.ExitFail
	}
	run.acceptance = &report.Acceptance{Verdict: handover(run.code), Answers: answers}
	if err := f.check.output.write(env, sinks, run.report); err != nil {
		return failed(err)
	}
	if run.code == checks.ExitInterrupted {
		return exit{run.code, errors.New("interrupted: no bundle was written")}
	}
	files, err := f.files(env, run, answers)
	if err != nil {
		return failed(err)
	}
	if err := accept.Write(out, files, key); err != nil {
		return failed(fmt.Errorf("the bundle was not written: %w", err))
	}
	_, _ = fmt.Fprintf(env.stderr, "\n%s: %s, signed by %s\n", out, run.acceptance.Verdict, ssh.FingerprintSHA256(key.PublicKey()))
	if run.code != checks.ExitOK {
		return exit{code: run.code}
	}
	return nil
}

// place is where the bundle goes; whether it can is found out before any host is touched.
func (f *acceptFlags) place() (string, error) {
	out := f.check.output.file
	if out == "" {
		out = "preflight-accept-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
	}
	out = filepath.Clean(out)
	if _, err := os.Lstat(out); err == nil {
		return "", usage("-o %s: it is there already, and a bundle is never overwritten", out)
	}
	return out, writable(out)
}

// handover is what an exit code means for a hand-over.
func handover(code int) string {
	switch code {
	case checks.ExitOK:
		return accept.Accepted
	case checks.ExitFail:
		return accept.Refused
	}
	return accept.Undecided
}

func (f *acceptFlags) signingKey(env *environment) (ssh.Signer, io.Closer, error) {
	if f.key == "" {
		return nil, nil, usage("a bundle is signed: give an SSH key, --key ~/.ssh/id_ed25519, or the .pub of one that the agent holds")
	}
	key, closer, err := remote.SigningKey(f.key, os.Getenv("SSH_AUTH_SOCK"), prompter(env))
	if err != nil {
		return nil, nil, usage("--key: %w", err)
	}
	return key, closer, nil
}

// answered are the answers of hands and eyes, from a file or from the terminal.
func (f *acceptFlags) answered(env *environment, rigs []*inventory.Rig) (accept.Answers, error) {
	asked := handed(rigs, env.lang())
	if f.answers == "" {
		if file, ok := env.stdin.(*os.File); ok {
			if _, tty := terminal(file); tty {
				return accept.Ask(env.stdin, env.stderr, asked)
			}
		}
		return accept.Answers{}, usage("somebody must answer for what no tool sees: give --checklist FILE\n`preflight accept -i %s --write-checklist FILE` writes it, to be answered with an editor", f.check.target.inventory)
	}
	raw, err := os.ReadFile(f.answers)
	if err != nil {
		return accept.Answers{}, usage("--checklist: %w", err)
	}
	answers, err := accept.ParseChecklist(raw, asked)
	if err != nil {
		return answers, usage("%s: %w", f.answers, err)
	}
	return answers, nil
}

// files are what the bundle holds.
func (f *acceptFlags) files(env *environment, run judgement, answers accept.Answers) ([]accept.File, error) {
	copies, at, err := inventoryFiles(f.check.target.inventory)
	if err != nil {
		return nil, err
	}
	record := accept.Record{
		Tool: version, At: run.start.UTC().Truncate(time.Second), Verdict: run.acceptance.Verdict, Exit: run.code, Inventory: at,
		Vars: variables(f.check.target.vars, os.Environ()), Profile: f.check.profile, Serials: f.check.target.serials, Answers: answers,
	}
	english, err := run.report(lang.En)
	if err != nil {
		return nil, err
	}
	files := append(copies, accept.File{Name: accept.RecordName, Fill: record.Marshal},
		accept.File{Name: accept.ReportName, Fill: func(w io.Writer) error { return report.WriteJSON(w, english) }})
	page, err := f.page(env, run)
	if err != nil {
		return nil, err
	}
	files = append(files, page)
	for _, r := range run.results {
		if r.Snapshot != nil {
			files = append(files, snapshotFile(r))
		}
	}
	return files, nil
}

// page is the report for people, in the language of those who hand over.
func (f *acceptFlags) page(env *environment, run judgement) (accept.File, error) {
	html := formats()[slices.Index(formatNames(), "html")]
	r, err := run.report(env.lang())
	return accept.File{Name: accept.PageName, Fill: func(w io.Writer) error {
		return html.write(w, r.In(env.lang()), env.lang(), &f.check.output)
	}}, err
}

func snapshotFile(r fleet.Result) accept.File {
	return accept.File{
		Name: path.Join(accept.SnapshotDir, r.Rig.Name+".tar.gz"),
		Fill: func(w io.Writer) error { return facts.Save(w, r.Snapshot) },
	}
}

// inventoryFiles are the inventory as it was used, and where it stands in the bundle.
func inventoryFiles(from string) (files []accept.File, at string, err error) {
	if from == "-" {
		return nil, "", errors.New("a hand-over keeps its inventory, and standard input is read already: write it to a file")
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, "", err
	}
	paths := []string{from}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(from, "*.hcl")); err != nil {
			return nil, "", err
		}
	}
	for _, p := range paths {
		raw, err := os.ReadFile(p)
		if err != nil {
			return nil, "", err
		}
		files = append(files, accept.File{
			Name: path.Join(accept.InventoryDir, filepath.Base(p)),
			Fill: func(w io.Writer) error { _, err := w.Write(raw); return err },
		})
	}
	if info.IsDir() {
		return files, accept.InventoryDir, nil
	}
	return files, files[0].Name, nil
}

// variables are what the command line and the environment gave for variables of the inventory.
func variables(vars, environ []string) map[string]string {
	out := map[string]string{}
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, inventory.EnvPrefix); ok {
			name, value, _ := strings.Cut(v, "=")
			out[name] = value
		}
	}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		out[name] = value
	}
	return out
}
