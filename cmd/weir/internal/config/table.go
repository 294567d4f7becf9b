package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/values"
)

// table checks the rows of a target and the key that selects them.
func (v *validator) table(at string, t *targetspec.Target, g targetspec.Glob) {
	switch {
	case !v.found.written(at + ".table"):
		if t.Key != "" {
			v.found.fault(at+".key", "missing-key", "add table: {KEY: {region: …, accountID: …}}, or remove the key", "the key selects a row of a table, and no table is configured")
		}
		return
	case g.Wildcards() == 0:
		v.found.fault(at+".table", "bad-value", "write the keys of the row into the target itself", "path %q has no wildcard, so it matches only one directory", t.Path)
		return
	case len(t.Table) == 0:
		v.found.fault(at+".table", "missing-key", "add a row for each directory, such as dev: {region: eu-west-1}", "it has no row, so no directory has a target")
		return
	case !targetspec.Placeholder.MatchString(t.Key):
		v.found.fault(at+".key", "bad-value", "", "%q has no placeholder such as {1}, so all directories would get the same row", t.Key)
	}
	v.placeholders(at+".key", t.Key, g)
	for _, key := range slices.Sorted(maps.Keys(t.Table)) {
		v.row(at+".table."+key, t, key, g)
	}
}

// row validates a row of a target's table. g is the pattern of the target's path.
func (v *validator) row(at string, t *targetspec.Target, key string, g targetspec.Glob) {
	r := t.Table[key]
	if key == "" {
		v.found.fault(at, "bad-value", "", "the key of a row is the text of %s, which is never empty", t.Key)
	}
	own := (&targetspec.Target{}).With(r)
	v.account(at, own)
	v.inDirectories(at, own, g)
	whole := t.With(r)
	switch {
	case whole.Region == "":
		v.found.fault(at+".region", "missing-key", "write it here, or into the target for all rows that have none", "the AWS region is required")
	case own.AccountID == whole.AccountID && own.RoleARN == whole.RoleARN && own.PlanRoleARN == whole.PlanRoleARN:
		// Faults in them were already reported.
	default:
		for _, role := range rolesOf(whole) {
			if account := accountOf(role.arn); account != "" && whole.AccountID != "" && account != whole.AccountID {
				v.found.fault(at, "bad-value", "write "+role.key+" and accountID of one account into the row", "%s is in account %s, but accountID is %s", role.key, account, whole.AccountID)
			}
		}
	}
}

// account checks that the roles of a target or a row belong to its account, and the names of its variables.
func (v *validator) account(at string, t *targetspec.Target) {
	for _, role := range rolesOf(t) {
		if account := accountOf(role.arn); rolePattern.MatchString(role.arn) && t.AccountID != "" && account != t.AccountID {
			v.found.fault(at+"."+role.key, "bad-value", "", "the role is in account %s, but accountID is %s", account, t.AccountID)
		}
	}
	for name := range t.Vars {
		if !ValidVar(name) {
			v.found.fault(at+".vars."+name, "bad-value", "", "a variable's name matches %s", values.Name)
		}
	}
}

// inDirectories checks the values of a target or a row that depend on the directory.
func (v *validator) inDirectories(at string, t *targetspec.Target, g targetspec.Glob) {
	if g.Wildcards() > 0 {
		for name, value := range t.Vars {
			v.placeholders(at+".vars."+name, value, g)
		}
	}
	v.placeholders(at+".kubeconfigFile", t.KubeconfigFile, g)
}

type keyedRole struct{ key, arn string }

func rolesOf(t *targetspec.Target) []keyedRole {
	return []keyedRole{{"roleARN", t.RoleARN}, {"planRoleARN", t.PlanRoleARN}}
}

// placeholders checks that each placeholder refers to a wildcard of the path.
func (v *validator) placeholders(at, text string, g targetspec.Glob) {
	for _, m := range targetspec.Placeholder.FindAllStringSubmatch(text, -1) {
		if n := int(m[1][0] - '0'); n > g.Wildcards() {
			v.found.fault(at, "bad-value", "", "{%d} refers to a wildcard that path %q does not have", n, g)
		}
	}
}

// accountOf returns the account in a role's ARN, empty if the ARN contains none.
func accountOf(arn string) string {
	if parts := strings.Split(arn, ":"); len(parts) > 4 {
		return parts[4]
	}
	return ""
}
