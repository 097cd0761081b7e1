package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"preflight/checks"
	"preflight/internal/accept"
	"preflight/internal/fleet"
	"preflight/internal/report"
)

// runVerify says whether a bundle is as it was signed, by whom, and what today's rules say of it.
func runVerify(env *environment, f *acceptFlags, args []string) error {
	if len(args) > 0 {
		return usage("--verify takes one bundle; %s is too much", strings.Join(args, " "))
	}
	who, err := f.expected()
	if err != nil {
		return err
	}
	files, closer, err := accept.Open(f.verify)
	if err != nil {
		return usage("%w", err)
	}
	defer closer()
	b, err := intact(files)
	var changed *changedError
	if errors.As(err, &changed) {
		return exit{checks.ExitFail, fmt.Errorf("%s is not as it was signed:\n  %s", f.verify, strings.Join(changed.what, "\n  "))}
	}
	if err != nil {
		return usage("%s: %w", f.verify, err)
	}
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintln(env.stdout, report.Safe(fmt.Sprintf(format, args...)))
	}
	say("%s: intact, %d files", f.verify, b.count)
	say("%s on %s by preflight %s, answered by %s", b.record.Verdict, b.record.At.Format("2006-01-02 15:04 UTC"), b.record.Tool, b.record.Answers.By)
	for _, r := range b.report.Rigs {
		say("  %s: %s", r.Name, r.Verdict)
	}
	for _, no := range b.record.Answers.Refused() {
		say("  hands and eyes said no: %s", no)
	}
	differ, err := rejudge(b)
	if err != nil {
		return usage("%s: its snapshots cannot be judged again: %w", f.verify, err)
	}
	if len(differ) == 0 {
		say("judged again by preflight %s: the same verdicts", version)
	} else {
		say("judged again by preflight %s, these verdicts differ:", version)
	}
	for _, d := range differ {
		say("  %s", d)
	}
	return who.judge(b, say)
}

// signerWanted is who must have signed.
type signerWanted struct {
	signers []accept.Signer
	file    string
	name    string // of an allowed signer, or a fingerprint
	key     ssh.PublicKey
}

// expected reads --allowed-signers and --signer.
func (f *acceptFlags) expected() (signerWanted, error) {
	w := signerWanted{file: f.allowedSigners, name: f.signer}
	if f.allowedSigners != "" {
		raw, err := os.ReadFile(f.allowedSigners)
		if err != nil {
			return w, usage("--allowed-signers: %w", err)
		}
		if w.signers, err = accept.ParseSigners(raw); err != nil {
			return w, usage("--allowed-signers %s: %w", f.allowedSigners, err)
		}
		if len(w.signers) == 0 {
			return w, usage("--allowed-signers %s: it lists nobody", f.allowedSigners)
		}
		return w, nil
	}
	if f.signer == "" || strings.HasPrefix(f.signer, "SHA256:") {
		return w, nil
	}
	raw, err := os.ReadFile(f.signer)
	if err != nil {
		return w, usage("--signer %s: without --allowed-signers it is a key, as SHA256:… or a .pub file: %w", f.signer, err)
	}
	if w.key, _, _, _, err = ssh.ParseAuthorizedKey(raw); err != nil {
		return w, usage("--signer %s: no public key: %w", f.signer, err)
	}
	return w, nil
}

// judge compares who signed with who should have.
func (w signerWanted) judge(b opened, say func(string, ...any)) error {
	print := ssh.FingerprintSHA256(b.key)
	switch {
	case w.file != "":
		name, err := accept.Principal(w.signers, b.key, w.name, time.Now())
		if err != nil {
			return exit{checks.ExitFail, fmt.Errorf("signed by %s, who may not: %s: %w", print, w.file, err)}
		}
		say("signed by %s, key %s", name, print)
	case w.key != nil && !bytes.Equal(w.key.Marshal(), b.key.Marshal()), w.key == nil && w.name != "" && !accept.Fingerprints(b.key, w.name):
		return exit{checks.ExitFail, fmt.Errorf("signed by another key: %s", print)}
	case w.name != "":
		say("signed by the key that was asked for, %s", print)
	default:
		say("intact, signed by unknown key %s", print)
		say("whose key that is, only you can know: compare it with what the vendor gave you, and name it with --signer or --allowed-signers")
		return exit{code: checks.ExitUnknown}
	}
	return nil
}

// rejudge judges the snapshots of a bundle by today's rules, against its own inventory, and names each check whose verdict
// is no longer the one of the report.
func rejudge(b opened) ([]string, error) {
	results, err := bundled(b)
	if err != nil {
		return nil, err
	}
	var differ []string
	for _, then := range b.report.Rigs {
		now, ok := results[then.Name]
		if !ok {
			if then.Error == nil {
				differ = append(differ, then.Name+": its snapshot is not in the bundle")
			}
			continue
		}
		differ = append(differ, differing(then, now)...)
	}
	return differ, nil
}

// differing names the checks of a rig whose verdict changed.
func differing(then report.Rig, now fleet.Result) []string {
	var out []string
	for _, id := range checks.IDs() {
		was, had := worstVerdict(then.Findings, id)
		is, has := worstVerdict(now.Findings, id)
		switch {
		case had && has && was != is:
			out = append(out, fmt.Sprintf("%s %s: %s then, %s now: %s", then.Name, id, was, is, summaryOf(now.Findings, id, is)))
		case !had && has && is != checks.Pass && is != checks.Skip:
			out = append(out, fmt.Sprintf("%s %s: not judged then, %s now: %s", then.Name, id, is, summaryOf(now.Findings, id, is)))
		}
	}
	return out
}

func worstVerdict(fs []checks.Finding, id string) (checks.Verdict, bool) {
	worst, any := checks.Skip, false
	for _, f := range fs {
		if f.Check == id {
			worst, any = checks.Worst(worst, f.Verdict), true
		}
	}
	return worst, any
}

func summaryOf(fs []checks.Finding, id string, v checks.Verdict) string {
	for _, f := range fs {
		if f.Check == id && f.Verdict == v {
			return f.Summary
		}
	}
	return ""
}
