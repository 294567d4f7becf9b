package fleet

import (
	"context"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// An untrusted proposal is rendered without secrets: placeholders stand for encrypted values and for secret
// variables. They differ from what AWS has, and would look like changes that nobody made. So the followed
// commit is rendered without secrets as well. Values that are equal in both of these builds count as
// unchanged, and the review uses the followed values. Only builds without secrets are compared, so the result
// reveals nothing about a secret.

// asFollowed replaces the values of an untrusted proposal's targets that are unchanged by the followed values.
func (b *Base) asFollowed(ctx context.Context, accounts Accounts, p Proposal, proposed map[string]*rendered, targets []*reconciler.Desired) error {
	names := map[string]bool{}
	for _, d := range targets {
		if before := b.fleet.followed[d.Policy.Target]; before != nil && before.result != nil && proposed[d.Policy.Target] != nil && proposed[d.Policy.Target].result != nil {
			names[d.Policy.Target] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	f := b.fleet.forReview(nil) // the builds of the followed commits have the secrets
	f.o.Accounts = accounts
	in := &inputs{views: b.views, variables: passing{p.Secrets, "proposals"}, readOnly: true}
	items := slices.DeleteFunc(f.expand(in), func(it *item) bool { return !names[it.name] })
	for _, it := range items {
		it.proposed, it.light = true, p.Light
		it.withhold()
	}
	defer f.Wait()
	if _, err := f.compose(ctx, in, items, -1); err != nil {
		return err
	}
	for _, d := range targets {
		name := d.Policy.Target
		if blind := f.renders[name]; names[name] && blind != nil && blind.result != nil {
			restore(d, proposed[name].result, blind.result, b.fleet.followed[name].result)
		}
	}
	return nil
}

// conceal keeps the lines of user data out of the plans of pools whose followed user data contains secrets. A
// difference line by line would show the author of a proposal whether a guess of a line is right. A new pool
// may be an existing one under another name, so it is concealed as well if any followed pool has a secret.
func (b *Base) conceal(d *reconciler.Desired) {
	if d.Set == nil {
		return
	}
	set, base := *d.Set, d.Base
	if base == nil {
		base = &intent.Set{}
	}
	set.Pools = slices.Clone(set.Pools)
	for i := range set.Pools {
		p := &set.Pools[i]
		before := base.Pool(p.Key.String())
		if p.LaunchTemplate == nil || p.LaunchTemplate.UserData.Mark != "" || before != nil && !secretive(*before) || before == nil && !b.secretive() {
			continue
		}
		t := *p.LaunchTemplate
		t.UserData.Concealed = true
		p.LaunchTemplate = &t
	}
	d.Set = &set
}

func secretive(p intent.Pool) bool {
	return p.LaunchTemplate != nil && p.LaunchTemplate.UserData.Mark != ""
}

// secretive reports whether the user data of any followed pool contains a secret.
func (b *Base) secretive() bool {
	for _, r := range b.fleet.followed {
		if r.result != nil && slices.ContainsFunc(r.result.Set.Pools, secretive) {
			return true
		}
	}
	return false
}

// restore puts the followed values into a target of an untrusted proposal. blind is the build of the followed
// commit without secrets, followed its build with secrets.
func restore(d *reconciler.Desired, proposal, blind, followed *render.Kept) {
	known := func(l diag.List, d diag.Diagnostic) bool {
		return slices.ContainsFunc(l, func(o diag.Diagnostic) bool {
			return o.Code == d.Code && o.Object == d.Object && o.Summary == d.Summary
		})
	}
	// A placeholder is not a valid value for every field.
	d.Diagnostics = slices.DeleteFunc(slices.Clone(d.Diagnostics), func(one diag.Diagnostic) bool {
		return known(blind.Diags, one) && !known(followed.Diags, one)
	})
	if d.Set == nil && d.Diagnostics.HasErrors() {
		return
	}
	set := proposal.Set
	set.Pools = slices.Clone(set.Pools)
	for i := range set.Pools {
		key := set.Pools[i].Key.String()
		if before, real := blind.Set.Pool(key), followed.Set.Pool(key); before != nil && real != nil {
			set.Pools[i] = mergedValue(reflect.ValueOf(set.Pools[i]), reflect.ValueOf(*before), reflect.ValueOf(*real)).Interface().(intent.Pool)
		}
	}
	for _, pool := range followed.Set.Pools {
		if key := pool.Key.String(); proposal.Set.Pool(key) == nil && blind.Set.Pool(key) == nil {
			set.Pools = append(set.Pools, pool)
			d.Diagnostics = append(d.Diagnostics, diag.Diagnostic{Severity: diag.Info, Code: "planned-as-followed", Object: pool.MachinePool.String(), Detail: diag.Hint("planned-as-followed"),
				Summary: "pool " + key + " cannot be rendered without secrets: this plan shows it as in the followed commit, without the changes of this proposal"})
		}
	}
	set.Sort()
	d.Set, d.Whole = &set, d.Err == nil && !d.Diagnostics.HasErrors()
}

// mergedValue returns the proposed value, with the parts of real wherever proposed and blind are equal. Lists
// are compared as a whole.
func mergedValue(proposed, blind, real reflect.Value) reflect.Value {
	if reflect.DeepEqual(proposed.Interface(), blind.Interface()) {
		return real
	}
	switch proposed.Kind() {
	case reflect.Struct:
		out := reflect.New(proposed.Type()).Elem()
		out.Set(proposed)
		for i := range proposed.NumField() {
			if proposed.Type().Field(i).IsExported() {
				out.Field(i).Set(mergedValue(proposed.Field(i), blind.Field(i), real.Field(i)))
			}
		}
		return out
	case reflect.Pointer:
		if proposed.IsNil() || blind.IsNil() || real.IsNil() {
			return proposed
		}
		out := reflect.New(proposed.Type().Elem())
		out.Elem().Set(mergedValue(proposed.Elem(), blind.Elem(), real.Elem()))
		return out
	case reflect.Map:
		out := reflect.MakeMap(proposed.Type())
		for _, key := range proposed.MapKeys() {
			value := proposed.MapIndex(key)
			if before, is := blind.MapIndex(key), real.MapIndex(key); before.IsValid() && is.IsValid() {
				value = mergedValue(value, before, is)
			}
			out.SetMapIndex(key, value)
		}
		return out
	}
	return proposed
}
