// Package accept writes and opens acceptance bundles: what a vendor hands over with a build, and what the buyer can check.
//
// A bundle is a folder, or the same folder as one .tar.gz:
//
//	SHA256SUMS           the manifest: a line a file, as sha256sum writes it
//	SHA256SUMS.sig       its SSH signature (SSHSIG), namespace preflight-accept
//	accept.json          who, when, with which version and profile, the answers of hands and eyes, the verdict
//	report.json          the report, for programs
//	report.html          the same for people
//	inventory/…          the inventory as it was used
//	snapshots/RIG.tar.gz what each rig showed; they can be judged again
//
// Nothing in a bundle is trusted before its hash is: a path that leads out of it, a link, a file that the manifest does not
// name is an error that names it.
//
// What never lives here: a verdict. Who judges a bundle's snapshots is the caller.
package accept
