package fleet

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/secret"
)

// give gives the items of a target their table row, values and keys.
func (f *Fleet) give(in *inputs, t *targetspec.Target, items []*item) {
	ages, agesErr := ageKeysOf(t)
	read := targetspec.ReadOnce()
	in.variables.hide(variablesOf(t.Name), secret.New(t.Hidden(read)...))
	for _, it := range items {
		if !it.unknown {
			own := t.For(it.match)
			if own == nil {
				it.reportMissingRow()
				continue
			}
			it.target = f.same(it.name, own, t)
		}
		values, err := it.target.Values(read)
		it.valueFiles = it.target.ValuePaths(it.path)
		it.vars, it.secretVars, it.keys = values.Vars, values.Secret, f.keysOf(in, it.target, ages)
		for _, err := range []error{err, agesErr} {
			if it.err == nil {
				it.err = err
			}
		}
	}
}

// variablesOf names the source of the values of a target's variables.
func variablesOf(target string) string { return "variables of " + target }

// same returns the earlier value of a target if it is equal, so that equal targets share one value.
func (f *Fleet) same(name string, own, written *targetspec.Target) *targetspec.Target {
	if own == written {
		return own
	}
	if earlier := f.earlier[name]; earlier != nil && reflect.DeepEqual(earlier, own) {
		own = earlier
	}
	f.made[name] = own
	return own
}

// reportMissingRow reports that the configuration has no row for the item.
func (it *item) reportMissingRow() {
	summary, detail := it.target.Missing(it.match)
	it.rowless = true
	it.diags = append(it.diags, diag.Diagnostic{Severity: diag.Error, Code: "row-missing", Summary: summary, Detail: detail})
}

// accountUnknown reports whether the account and region of the item are unknown.
func (it *item) accountUnknown() bool { return it.rowless || it.unknown && it.target.Table != nil }

// unmatched warns of rows without a directory, with the first of the target's items. If the source
// cannot be read, it reports nothing.
func unmatched(t *targetspec.Target, items []*item) {
	if len(items) == 0 || t.Table == nil || items[0].unlisted() {
		return
	}
	left := maps.Clone(t.Table)
	for _, it := range items {
		if !it.unknown {
			delete(left, t.KeyFor(it.match))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		items[0].diags = append(items[0].diags, diag.Diagnostic{
			Severity: diag.Warning, Code: "row-unused", Summary: fmt.Sprintf("the row %q in the table of the target %s matches no directory of path %s", key, t.Name, t.Path),
			Detail: diag.Hint("row-unused"),
		})
	}
}

// reserve protects the resources of targets whose row is missing from adoption by others. If the
// directories are unknown, a target that lost its row may be among them: then all names that the
// target's pattern gives are reserved.
func reserve(items []*item) {
	rowless, listed := map[string]bool{}, map[string]bool{}
	var unlisted []string
	for _, it := range items {
		switch {
		case it.rowless:
			rowless[it.name] = true
		case it.unlisted() && it.target.Table != nil:
			unlisted = append(unlisted, targetspec.Placeholder.ReplaceAllString(it.target.Name, "*"))
		case !it.unknown:
			listed[it.name] = true
		}
	}
	for _, it := range items {
		if p := &it.desired.Policy; len(rowless) > 0 {
			p.AccountUnknown = rowless
		}
		if p := &it.desired.Policy; len(unlisted) > 0 {
			p.Unlisted, p.Listed = unlisted, listed
		}
	}
}

// keepUnlisted prevents deletions in places that may have unknown targets. If a path could not be read,
// these are all places that its table names.
func (f *Fleet) keepUnlisted(items []*item, batches []reconciler.Batch) {
	for _, it := range items {
		if !it.unknown || it.target.Table == nil {
			continue
		}
		for _, row := range it.target.Rows() {
			maybe := reconciler.ScopeKey{Account: row.AccountID, Region: row.Region, RoleARN: row.RoleARN, Endpoint: f.o.endpoint(row)}
			for _, b := range batches {
				if meet, _ := f.o.Accounts.Meet(maybe, b.Key); !meet {
					continue
				}
				for i := range b.Targets {
					b.Targets[i].Whole = false
				}
			}
		}
	}
}
