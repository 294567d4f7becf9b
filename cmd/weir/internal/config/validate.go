package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/diag"
)

// validator validates a whole decoded configuration: each key by its rule, and then relations between
// values.
type validator struct {
	config *Config
	found  *findings
	reads  credentialValidator
}

// credentialValidator checks the coordination of members, and the files with credentials that a
// configuration names.
type credentialValidator struct {
	config *Config
	found  *findings
}

// findings contains the faults of a configuration.
type findings struct {
	config  *Config
	decoder *decoder
}

// fault reports a fault of a path, at its position in the file or otherwise at the position of the
// enclosing section.
func (v *findings) fault(at, code, detail, format string, args ...any) {
	v.report(diag.Error, at, code, detail, format, args...)
}

func (v *findings) report(severity diag.Severity, at, code, detail, format string, args ...any) {
	v.decoder.faults = append(v.decoder.faults, diag.Diagnostic{
		Severity: severity, Code: code, Summary: at + ": " + fmt.Sprintf(format, args...), Detail: detail, Position: v.position(at),
	})
}

func (v *findings) position(at string) diag.Position {
	for {
		if pos, ok := v.decoder.at[at]; ok {
			return pos
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			return diag.Position{File: v.config.File}
		}
		at = at[:cut]
	}
}

// written reports whether the file contains the key at a path.
func (v *findings) written(at string) bool {
	_, ok := v.decoder.at[at]
	return ok
}

// run validates the whole configuration except the files that it names, and collects the faults.
func (v *validator) run() {
	v.keys()
	v.access()
	v.reads.coordination()
	for i := range v.config.Sources {
		v.source(fmt.Sprintf("sources[%d]", i), &v.config.Sources[i])
	}
	for i := range v.config.Forges {
		v.forge(fmt.Sprintf("forges[%d]", i), &v.config.Forges[i])
	}
	for i := range v.config.GateProviders {
		v.gateProvider(fmt.Sprintf("gateProviders[%d]", i), &v.config.GateProviders[i])
	}
	for i := range v.config.Targets {
		v.target(fmt.Sprintf("targets[%d]", i), &v.config.Targets[i])
	}
	v.planRoles()
	v.dependencies()
}

// sourceOf returns the source with a name, or nil if none exists.
func (c *Config) sourceOf(name string) *Source {
	if i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == name }); i >= 0 {
		return &c.Sources[i]
	}
	return nil
}

func (v *validator) sourceRef(at, name string) {
	switch {
	case name == "":
		v.found.fault(at, "missing-key", "", "the name of a source is required")
	case v.config.sourceOf(name) == nil:
		v.found.fault(at, "unknown-source", "", "there is no source %q", name)
	}
}

// forge validates an entry of forges. at is its position in the configuration.
func (v *validator) forge(at string, f *Forge) {
	v.sourceRef(at+".source", f.Source)
	hooksOnly := f.Profile().WebhooksOnly
	if u := webAddress(f.URL); (!hooksOnly || f.URL != "") && (u == nil || u.User != nil || strings.Count(strings.Trim(u.Path, "/"), "/") < 1) {
		v.found.fault(at+".url", "bad-value", "write it like https://github.com/owner/repository", "%q is not the address of a repository", redact(f.URL))
	}
	switch {
	case !hooksOnly:
		v.forgeToken(at, f)
	case f.TokenFile != "":
		v.found.fault(at+".tokenFile", "bad-value", "name the forge's own type for commit statuses", "a generic forge takes webhooks only, and needs no token")
	}
	if hooksOnly && f.WebhookSecretFile == "" {
		v.found.fault(at+".webhookSecretFile", "missing-key", goodSecret, "a file with the secret of the webhooks is required")
	}
	v.pulls(at+".pullRequests", f)
	v.push(at+".push", f)
}

// target validates an entry of targets. at is its position in the configuration.
func (v *validator) target(at string, t *targetspec.Target) {
	v.sourceRef(at+".source", t.Source)
	if t.Region == "" && len(t.Table) == 0 {
		v.found.fault(at+".region", "missing-key", "", "the AWS region is required")
	}
	v.account(at, t)
	v.windows(at+".windows", t.Windows)
	v.demand(at+".rollout", t.Rollout)
	g, err := targetspec.ParseGlob(t.Path)
	if err != nil {
		return // reported with the path
	}
	v.placeholders(at+".name", t.Name, g)
	for n := 1; n <= g.Wildcards(); n++ {
		if !strings.Contains(t.Name, fmt.Sprintf("{%d}", n)) {
			v.found.fault(at+".name", "bad-value", "", "the path has %d wildcard(s), so the name needs {%d} to tell its targets apart", g.Wildcards(), n)
		}
	}
	v.inDirectories(at, t, g)
	v.varsFrom(at, t, g)
	v.table(at, t, g)
}

// varsFrom validates the files with variables of a target. g is the pattern of the target's path.
func (v *validator) varsFrom(at string, t *targetspec.Target, g targetspec.Glob) {
	for j, from := range t.VarsFrom {
		at := fmt.Sprintf("%s.varsFrom[%d]", at, j)
		switch {
		case from.File == "" && from.Path == "":
			v.found.fault(at, "missing-key", "", "a file on this machine, or the path of one in the repository, is required")
		case from.File != "" && from.Path != "":
			v.found.fault(at, "bad-value", "write an entry for each", "file and path are two files")
		case from.Path != "" && from.Secret:
			v.found.fault(at+".secret", "bad-value", "put secret values into a file on this machine, or encrypt their manifests with SOPS", "everybody who can read the repository can read its files")
		}
		if from.Path != "" {
			v.valuePath(at+".path", from.Path, g)
		}
		v.placeholders(at+".file", from.File, g)
		v.placeholders(at+".path", from.Path, g)
	}
}

// valuePath checks that a file in the repository is below the source's root, for all values of the target's
// wildcards.
func (v *validator) valuePath(at, p string, g targetspec.Glob) {
	dir := g.String()
	if g.OfFiles() {
		dir = path.Dir(dir)
	}
	if _, err := targetspec.CleanPath(path.Join(dir, p)); err != nil || path.IsAbs(p) || strings.Contains(p, "\\") {
		v.found.fault(at, "bad-value", "write it relative to the target's directory, such as values.env", "%q is not a path below the source's root", p)
	}
}
