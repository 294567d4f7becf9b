package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/target"
)

// table checks the rows of a target and the key that finds them.
func (v *validator) table(at string, t *target.Target) {
	g, err := target.ParseGlob(t.Path)
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
	case !target.Placeholder.MatchString(t.Key):
		v.fault(at+".key", "bad-value", "", "%q holds no placeholder such as {1}, so all directories would have one row", t.Key)
	}
	v.placeholders(at+".key", t.Key, g)
	for _, key := range slices.Sorted(maps.Keys(t.Table)) {
		v.row(at+".table."+key, t, key, g)
	}
}

func (v *validator) row(at string, t *target.Target, key string, g target.Glob) {
	r := t.Table[key]
	if key == "" {
		v.fault(at, "bad-value", "", "the key of a row is what %s stands for, which is never empty", t.Key)
	}
	own := (&target.Target{}).With(r)
	v.accountRegion(at, own, g)
	whole := t.With(r)
	switch {
	case whole.Region == "":
		v.fault(at+".region", "missing-key", "write it here, or into the target for all rows that have none", "the AWS region is required")
	case own.AccountID == whole.AccountID && own.RoleARN == whole.RoleARN && own.PlanRoleARN == whole.PlanRoleARN:
		// Faults between them have been reported.
	default:
		for _, role := range []struct{ key, arn string }{{"roleARN", whole.RoleARN}, {"planRoleARN", whole.PlanRoleARN}} {
			if account := accountOf(role.arn); account != "" && whole.AccountID != "" && account != whole.AccountID {
				v.fault(at, "bad-value", "write "+role.key+" and accountID of one account into the row", "%s is in account %s, but accountID is %s", role.key, account, whole.AccountID)
			}
		}
	}
}

// accountRegion checks where a target or a row is applied and how that is reached.
func (v *validator) accountRegion(at string, t *target.Target, g target.Glob) {
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
func (v *validator) placeholders(at, text string, g target.Glob) {
	for _, m := range target.Placeholder.FindAllStringSubmatch(text, -1) {
		if n := int(m[1][0] - '0'); n > g.Wildcards() {
			v.fault(at, "bad-value", "", "{%d} stands for a wildcard that path %q does not have", n, g)
		}
	}
}

// accountOf is the account in a role's ARN, empty if the ARN names no account.
func accountOf(arn string) string {
	if parts := strings.Split(arn, ":"); len(parts) > 4 {
		return parts[4]
	}
	return ""
}
