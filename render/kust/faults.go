package kust

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust/worker"
)

// faultAt returns an error diagnostic. This is the list of all codes:
//
//	bad-patch, bad-path, bad-variable, build-failed, deprecated-field (info or error),
//	duplicate-key, duplicate-object, exec-plugin, helm, kustomization-cycle,
//	kustomization-duplicate, kustomization-invalid, kustomization-missing,
//	kustomization-unknown-field, lfs-pointer, missing-file, not-an-object, path-escape,
//	remote-reference, secret-cut, secret-in-name, symlink-escape, timeout, too-large, unset-variable,
//	unsupported-field, yaml-alias, yaml-syntax
func faultAt(code string, at diag.Position, summary, detail string) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Error, Code: code, Position: at, Summary: summary, Detail: detail}
}

// findings collects the diagnostics of a build.
type findings struct{ diags diag.List }

// add reports an error.
func (f *findings) add(code string, at diag.Position, summary, detail string) {
	f.report(faultAt(code, at, summary, detail))
}

// maxFaults bounds the findings of a build.
const maxFaults = 500

// report adds a diagnostic, unless there are too many.
func (f *findings) report(d diag.Diagnostic) {
	if len(f.diags) == maxFaults {
		d = faultAt("too-large", diag.Position{}, fmt.Sprintf("more than %d findings; only these are shown", maxFaults), "Correct them first.")
	}
	if len(f.diags) <= maxFaults {
		d.Summary, d.Detail = shortened(d.Summary), shortened(d.Detail)
		f.diags = append(f.diags, d)
	}
}

// outsideRoot reports a reference to a file that kustomize would not load.
func (f *findings) outsideRoot(written string, at diag.Position) {
	f.add("path-escape", at, fmt.Sprintf("%s is not in or below the directory of the kustomization that names it", written),
		"Files must be below the kustomization; to share one, give its directory a kustomization and use that as a base.")
}

// shortened cuts a long text, so that long names in a repository cannot fill a report.
func shortened(s string) string {
	const longest = 1000
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

func tooLarge(at diag.Position, summary string) diag.Diagnostic {
	return faultAt("too-large", at, summary, "Split the target, or remove large parts.")
}

func tooManyNodes(at diag.Position, summary string, limit int) diag.Diagnostic {
	return faultAt("too-large", at, fmt.Sprintf("%s; limits.nodes allows %d", summary, limit), "Split the target, remove large parts, or raise limits.nodes in weir's configuration.")
}

func timeoutDiagnostic(at diag.Position, limit time.Duration) diag.Diagnostic {
	return faultAt("timeout", at, fmt.Sprintf("the build took longer than %s", limit), whatTakesLong)
}

const whatTakesLong = "kustomize compares all objects of a kustomization with each other: split the target, or look for bases that are included very often and for patches, labels and replacements of very many objects."

// endedDiagnostic returns the diagnostic for a process of a build that ended early.
func endedDiagnostic(at diag.Position, e *worker.Ended) diag.Diagnostic {
	switch e.Cause {
	case worker.CPU:
		return faultAt("timeout", at, fmt.Sprintf("the build took more than %s of CPU time", e.Limits.CPU), whatTakesLong)
	case worker.Memory:
		return faultAt("too-large", at, fmt.Sprintf("kustomize needs more than the %d MiB of memory that a build may take", e.Limits.Memory>>20),
			"Look for patches and replacements that copy what is large, and for bases that are included very often; or split the target.")
	case worker.Killed:
		return faultAt("build-failed", at, "the process of the build was killed twice",
			"The system kills processes if memory is short: give weir's service or pod more memory. Otherwise find out what kills the process, and try again.")
	default:
		return faultAt("build-failed", at, "kustomize crashed in this build", sameInKubectl)
	}
}

// pathFault reports an error of the view about a path in a file. An error of the tree itself is not a
// diagnostic: Build returns it.
func (r *reader) pathFault(written string, at diag.Position, err error) {
	var d diag.Diagnostic
	switch {
	case r.view.failure() != nil:
		return
	case errors.Is(err, errLinkEscape):
		d = faultAt("symlink-escape", at, fmt.Sprintf("%s leads through a symlink out of the repository", written),
			"A build reads only the files of its commit. Replace the symlink by the file.")
	case errors.Is(err, errLinkLoop):
		d = faultAt("bad-path", at, fmt.Sprintf("%s leads through more than %d symlinks", written, maxLinks),
			"Look for a symlink that leads to itself.")
	case errors.Is(err, errSubmodule):
		d = faultAt("missing-file", at, fmt.Sprintf("%s is in a Git submodule", written),
			"Submodules are not read. Copy the files, or make them a target of their own.")
	case errors.Is(err, errEscape):
		d = faultAt("path-escape", at, fmt.Sprintf("%s leaves the repository", written),
			"Give a path inside the repository.")
	case errors.Is(err, errLimit):
		d = tooLarge(at, err.Error())
	case errors.Is(err, fs.ErrNotExist):
		d = faultAt("missing-file", at, fmt.Sprintf("%s does not exist", written),
			"Add the file, or correct the path; it is relative to the file that names it.")
	default:
		d = faultAt("bad-path", at, fmt.Sprintf("read %s: %v", written, err), "")
	}
	r.report(d)
}
