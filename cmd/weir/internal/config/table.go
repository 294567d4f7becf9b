package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Row is what the table of a target says of one directory: each key that is written
// takes the place of the target's own, and vars are added to the target's and win over
// them.
type Row struct {
	Region          string            `yaml:"region"`
	AccountID       string            `yaml:"accountID"`
	RoleARN         string            `yaml:"roleARN"`
	PlanRoleARN     string            `yaml:"planRoleARN"`
	AllowedRoleARNs []string          `yaml:"allowedRoleARNs"`
	EndpointURL     string            `yaml:"endpointURL"`
	Network         Network           `yaml:"network"`
	Vars            map[string]string `yaml:"vars"`
	KMSKeyARNs      []string          `yaml:"kmsKeyARNs"`
	KubeconfigFile  string            `yaml:"kubeconfigFile"`
}

// DefaultKey is the key of a directory's row where the target has none.
const DefaultKey = "{1}"

// KeyFor is the key of the row for a directory: exactly what the wildcards stand for,
// so that no other directory's name comes to the same.
func (t *Target) KeyFor(m Match) string { return fillIn(t.Key, m.Texts) }

// For is the target as it holds for one of its directories: with its row, and with
// what the wildcards stand for in values and names of files. It is the target itself
// where nothing differs, and nil where there is a table that lacks the directory.
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
	out := t.with(row)
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

// Rows are the target with each row of its table, by key in order; itself where it has
// no table. What stands for wildcards stays as it is written.
func (t *Target) Rows() []*Target {
	if t.Table == nil {
		return []*Target{t}
	}
	var out []*Target
	for _, key := range slices.Sorted(maps.Keys(t.Table)) {
		out = append(out, t.with(t.Table[key]))
	}
	return out
}

// with is the target with a row, and without its table.
func (t *Target) with(r Row) *Target {
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

// templated reports whether the target's own keys say something else of each directory.
func (t *Target) templated() bool {
	if placeholder.MatchString(t.KubeconfigFile) {
		return true
	}
	for _, value := range t.Vars {
		if placeholder.MatchString(value) {
			return true
		}
	}
	return slices.ContainsFunc(t.VarsFrom, func(f VarsFrom) bool { return placeholder.MatchString(f.File + f.Path) })
}

// fillIn puts what wildcards stand for into a text.
func fillIn(template string, texts []string) string {
	return placeholder.ReplaceAllStringFunc(template, func(p string) string {
		if n := int(p[1] - '0'); n <= len(texts) {
			return texts[n-1]
		}
		return p
	})
}

// fileFor is the name of a file for one directory, of which the repository decides the
// name: what a placeholder stands for fills in one part of a path and leads nowhere
// else.
func fileFor(template string, standsFor func(placeholder string) string) string {
	parts := strings.Split(template, "/")
	for i, part := range parts {
		if !placeholder.MatchString(part) {
			continue
		}
		parts[i] = placeholder.ReplaceAllStringFunc(part, standsFor)
		if strings.Trim(parts[i], ".") == "" {
			parts[i] = strings.Repeat("-", len(parts[i]))
		}
	}
	return strings.Join(parts, "/")
}

// Files are the files on this machine that there are: of a name that holds placeholders
// all those that it may stand for.
func (f VarsFrom) Files() []string {
	if f.File == "" {
		return nil
	}
	if !placeholder.MatchString(f.File) {
		return []string{f.File}
	}
	pattern := ""
	for last := 0; ; {
		at := placeholder.FindStringIndex(f.File[last:])
		if at == nil {
			pattern += literal.ReplaceAllString(f.File[last:], `\$0`)
			break
		}
		pattern += literal.ReplaceAllString(f.File[last:last+at[0]], `\$0`) + "*"
		last += at[1]
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil // a pattern of this form has no fault
	}
	return found
}

var literal = regexp.MustCompile(`[\\*?\[\]]`)

// table checks the rows of a target and the key that finds them.
func (v *validator) table(at string, t *Target) {
	g, err := ParseGlob(t.Path)
	if err != nil {
		return // which is reported with the path
	}
	_, written := v.decoder.at[at+".table"]
	switch {
	case !written:
		if t.Key != "" {
			v.fault(at+".key", "missing-key", "add table: {KEY: {region: …, accountID: …}}, or leave the key out", "it finds a row of a table, and there is none")
		}
		return
	case g.Wildcards() == 0:
		v.fault(at+".table", "bad-value", "write the keys of the row into the target itself", "path %q has no wildcard, so there is one directory only", t.Path)
		return
	case len(t.Table) == 0:
		v.fault(at+".table", "missing-key", "add a row for each directory, such as dev: {region: eu-west-1}", "it has no row, so no directory has a target")
		return
	case !placeholder.MatchString(t.Key):
		v.fault(at+".key", "bad-value", "", "%q holds no placeholder such as {1}, so all directories would have one row", t.Key)
	}
	v.placeholders(at+".key", t.Key, g)
	for _, key := range slices.Sorted(maps.Keys(t.Table)) {
		v.row(at+".table."+key, t, key, g)
	}
}

func (v *validator) row(at string, t *Target, key string, g Glob) {
	r := t.Table[key]
	if key == "" {
		v.fault(at, "bad-value", "", "the key of a row is what %s stands for, which is never empty", t.Key)
	}
	own := (&Target{}).with(r)
	v.place(at, own, g)
	whole := t.with(r)
	switch {
	case whole.Region == "":
		v.fault(at+".region", "missing-key", "write it here, or into the target for all rows that have none", "the AWS region is required")
	case own.AccountID == whole.AccountID && own.RoleARN == whole.RoleARN && own.PlanRoleARN == whole.PlanRoleARN:
		// What is wrong between them has been said.
	default:
		for _, role := range []struct{ key, arn string }{{"roleARN", whole.RoleARN}, {"planRoleARN", whole.PlanRoleARN}} {
			if account := accountOf(role.arn); account != "" && whole.AccountID != "" && account != whole.AccountID {
				v.fault(at, "bad-value", "write "+role.key+" and accountID of one account into the row", "%s is in account %s, but accountID is %s", role.key, account, whole.AccountID)
			}
		}
	}
}

// place checks where a target or a row is applied and how that is reached.
func (v *validator) place(at string, t *Target, g Glob) {
	if t.Region != "" && !ValidRegion(t.Region) {
		v.fault(at+".region", "bad-value", "", "%q does not look like a region", t.Region)
	}
	if t.AccountID != "" && !accountPattern.MatchString(t.AccountID) {
		v.fault(at+".accountID", "bad-value", "put it in quotes: YAML may read digits as a number", "%q is not 12 digits", t.AccountID)
	}
	v.roles(at, t)
	v.endpoint(at+".endpointURL", t.EndpointURL)
	v.network(at+".network", t.Network)
	for _, name := range slices.Sorted(maps.Keys(t.Vars)) {
		if !ValidVar(name) {
			v.fault(at+".vars."+name, "bad-value", "", "a variable's name matches %s", varPattern)
		}
		if g.Wildcards() > 0 {
			v.placeholders(at+".vars."+name, t.Vars[name], g)
		}
	}
	v.kmsKeys(at, t)
	v.placeholders(at+".kubeconfigFile", t.KubeconfigFile, g)
}

// placeholders checks that each stands for a wildcard of the path.
func (v *validator) placeholders(at, text string, g Glob) {
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if n := int(m[1][0] - '0'); n > g.Wildcards() {
			v.fault(at, "bad-value", "", "{%d} stands for a wildcard that path %q does not have", n, strings.Join(g.elements, "/"))
		}
	}
}

// accountOf is the account in a role's ARN, empty if there is none.
func accountOf(arn string) string {
	if parts := strings.Split(arn, ":"); len(parts) > 4 {
		return parts[4]
	}
	return ""
}

// Lacks says which row a directory's table lacks, and what to write.
func (t *Target) Lacks(m Match) (summary, detail string) {
	key := t.KeyFor(m)
	return fmt.Sprintf("the table of the target %s has no row %q, so where the directory %s is applied to is not said", t.Name, key, m.Path),
		fmt.Sprintf("Add the row to targets[].table of weir's configuration, such as %q: {region: eu-west-1, accountID: \"123456789012\"}, or take the directory away. "+
			"Until then nothing of the target is planned, changed or deleted; what it has in AWS stays.", key)
}
