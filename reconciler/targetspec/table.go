package targetspec

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Row is a directory's row in a target's table. Each key that is set replaces the target's own. vars are
// added to the target's and win over them.
type Row struct {
	// Region replaces the region of the target.
	Region string `yaml:"region"`
	// AccountID replaces the account of the target.
	AccountID string `yaml:"accountID"`
	// RoleARN replaces the role of the target.
	RoleARN string `yaml:"roleARN"`
	// PlanRoleARN replaces the role for plans.
	PlanRoleARN string `yaml:"planRoleARN"`
	// AllowedRoleARNs replaces the allowed roles of the target.
	AllowedRoleARNs []string `yaml:"allowedRoleARNs"`
	// EndpointURL replaces the endpoint of the target.
	EndpointURL string `yaml:"endpointURL"`
	// Network replaces the network of the target.
	Network Network `yaml:"network"`
	// Vars adds values for ${VAR}. They win over the vars of the target.
	Vars map[string]string `yaml:"vars"`
	// KMSKeyARNs replaces the KMS keys of the target.
	KMSKeyARNs []string `yaml:"kmsKeyARNs"`
	// KubeconfigFile replaces the kubeconfig of the target.
	KubeconfigFile string `yaml:"kubeconfigFile"`
}

// defaultKey is the key of a row if the target does not set one.
const defaultKey = "{1}"

// KeyFor returns the key of the row for a directory. It uses the wildcards' texts unchanged, so that
// different directories never get the same key by conversion.
func (t *Target) KeyFor(m Match) string { return fillIn(t.Key, m.Texts) }

// For returns the target for one of its directories: with its row, and with the wildcards' values
// in values and names of files. It returns the target itself if nothing differs, and nil if the
// target has a table without the directory.
func (t *Target) For(m Match) *Target {
	row, found := t.Table[t.KeyFor(m)]
	switch {
	case t.Table != nil && !found:
		return nil
	case t.Table == nil && (len(m.Texts) == 0 || !t.templated()):
		return t
	}
	named := func(p string) string { return NameFor(p, m) }
	exactly := func(p string) string { return fillIn(p, m.Texts) }
	out := t.With(row)
	for name, value := range out.Vars {
		out.Vars[name] = fillIn(value, m.Texts)
	}
	out.VarsFrom = slices.Clone(t.VarsFrom)
	for i := range out.VarsFrom {
		f := &out.VarsFrom[i]
		f.File, f.Path = fileFor(f.File, named), fileFor(f.Path, exactly)
	}
	out.KubeconfigFile = fileFor(out.KubeconfigFile, named)
	return out
}

// Rows returns the target with each row of its table, in the order of the keys, or the target itself without
// a table. Placeholders stay unchanged.
func (t *Target) Rows() []*Target {
	if t.Table == nil {
		return []*Target{t}
	}
	var out []*Target
	for _, key := range slices.Sorted(maps.Keys(t.Table)) {
		out = append(out, t.With(t.Table[key]))
	}
	return out
}

// With returns the target with a row, and without its table.
func (t *Target) With(r Row) *Target {
	out := *t
	out.Key, out.Table = "", nil
	out.Region, out.AccountID = cmp.Or(r.Region, t.Region), cmp.Or(r.AccountID, t.AccountID)
	out.RoleARN, out.PlanRoleARN = cmp.Or(r.RoleARN, t.RoleARN), cmp.Or(r.PlanRoleARN, t.PlanRoleARN)
	out.EndpointURL, out.KubeconfigFile = cmp.Or(r.EndpointURL, t.EndpointURL), cmp.Or(r.KubeconfigFile, t.KubeconfigFile)
	if len(r.AllowedRoleARNs) > 0 {
		out.AllowedRoleARNs = r.AllowedRoleARNs
	}
	if len(r.KMSKeyARNs) > 0 {
		out.KMSKeyARNs = r.KMSKeyARNs
	}
	if !r.Network.isZero() {
		out.Network = r.Network
	}
	out.Vars = maps.Clone(t.Vars)
	if out.Vars == nil {
		out.Vars = map[string]string{}
	}
	maps.Copy(out.Vars, r.Vars)
	if out.KubeconfigFile != "" && len(out.SSMPrefixes) == 0 {
		out.SSMPrefixes = []string{DefaultSSMPrefix}
	}
	return &out
}

func (n Network) isZero() bool {
	return n.VPCID == "" && len(n.SubnetIDs) == 0 && len(n.SecurityGroupIDs) == 0
}

// templated reports whether the target's own keys depend on the directory.
func (t *Target) templated() bool {
	if Placeholder.MatchString(t.KubeconfigFile) {
		return true
	}
	for _, value := range t.Vars {
		if Placeholder.MatchString(value) {
			return true
		}
	}
	return slices.ContainsFunc(t.VarsFrom, func(f VarsFrom) bool { return Placeholder.MatchString(f.File + f.Path) })
}

// fillIn replaces the placeholders in a text by the wildcards' texts.
func fillIn(template string, texts []string) string {
	return Placeholder.ReplaceAllStringFunc(template, func(p string) string {
		if n := int(p[1] - '0'); n <= len(texts) {
			return texts[n-1]
		}
		return p
	})
}

// fileFor returns the name of a file for one directory. The repository chooses the directory's name, so a
// placeholder's value fills only one path element and cannot lead elsewhere.
func fileFor(template string, standsFor func(placeholder string) string) string {
	parts := strings.Split(template, "/")
	for i, part := range parts {
		if !Placeholder.MatchString(part) {
			continue
		}
		parts[i] = Placeholder.ReplaceAllStringFunc(part, standsFor)
		if strings.Trim(parts[i], ".") == "" {
			parts[i] = strings.Repeat("-", len(parts[i]))
		}
	}
	return strings.Join(parts, "/")
}

// Files returns the existing files on this machine. For a name with placeholders, it returns all files that
// may be meant.
func (f VarsFrom) Files() []string {
	if f.File == "" {
		return nil
	}
	if !Placeholder.MatchString(f.File) {
		return []string{f.File}
	}
	pattern := ""
	for last := 0; ; {
		at := Placeholder.FindStringIndex(f.File[last:])
		if at == nil {
			pattern += literal.ReplaceAllString(f.File[last:], `\$0`)
			break
		}
		pattern += literal.ReplaceAllString(f.File[last:last+at[0]], `\$0`) + "*"
		last += at[1]
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil // a pattern of this form is always valid
	}
	return found
}

var literal = lazyregexp.New(`[\\*?\[\]]`)

// Missing describes the missing row of a directory, and what to write.
func (t *Target) Missing(m Match) (summary, detail string) {
	key := t.KeyFor(m)
	return fmt.Sprintf("the table of the target %s has no row %q, so weir does not know where to apply the directory %s", t.Name, key, m.Path),
		fmt.Sprintf("Add the row to targets[].table of weir's configuration, such as %q: {region: eu-west-1, accountID: \"123456789012\"}, or remove the directory. "+
			"Until then weir plans, changes and deletes nothing for this directory, and its resources in AWS stay.", key)
}
