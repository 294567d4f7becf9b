package main

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
)

// ofConfig makes the policies of a configuration's targets, one for each account
// and role. What it made is returned beside the error where a target could not be
// rendered, for its roles are then missing.
func (f *policyFlags) ofConfig(ctx context.Context, s surroundings, names []string) ([]rolePolicy, error) {
	c, err := s.loadConfig(f.config)
	if err != nil {
		return nil, err
	}
	dir, done, err := mirrorDir(c.StateDir)
	if err != nil {
		return nil, err
	}
	w := &work{release: []func(){done}}
	defer w.close()
	log := s.quiet()
	views, err := w.readSources(ctx, c, dir, s.secrets.Set, log)
	if err != nil {
		return nil, err
	}
	aws := accounts.New(accounts.Options{Logger: log, Getenv: s.getenv})
	composed, err := fleet.New(fleet.Options{Config: c.Fleet(""), Accounts: aws, Keyless: true, Secrets: s.secrets, Logger: log}).Compose(ctx, views)
	if err != nil {
		return nil, err
	}
	w.batches = composed.Batches
	if err := w.choose(names, composed.Targets); err != nil {
		return nil, err
	}
	known := map[string]fleet.Target{}
	for _, t := range composed.Targets {
		known[t.Name] = t
	}
	var of roleScopes
	var blind []string
	for _, b := range w.batches {
		for i := range b.Targets {
			d := &b.Targets[i]
			t := known[d.Policy.Target]
			if w.chosen != nil && !w.chosen[t.Name] || t.Config == nil {
				continue
			}
			if d.Policy.Region == "" { // it is applied nowhere, so nothing is granted for it
				s.printer(s.stderr).Diagnostics(d.Diagnostics)
				if d.Err != nil {
					return nil, d.Err // the targets are unknown
				}
				continue
			}
			if d.Set == nil || d.Diagnostics.HasErrors() {
				blind = append(blind, t.Name)
				s.printer(s.stderr).Diagnostics(d.Diagnostics)
			}
			if err := of.add(f, c.Instance, t, b.Key, d); err != nil {
				return nil, err
			}
		}
	}
	if len(blind) > 0 && len(f.passRoles) == 0 {
		err = usage("mend what is said above, or name the roles with --pass-role", "%s cannot be rendered, so the roles that may be passed are not all known", several(blind))
	}
	return of.policies(f), err
}

// roleScopes collects what targets need by the role that serves them.
type roleScopes struct {
	list   []*roleScope
	assume []string
}

// roleScope is what the targets of one role need.
type roleScope struct {
	access         iampolicy.Access
	role           string
	scope          iampolicy.Scope
	targets, notes []string
}

// add adds a target to the roles that serve it.
func (r *roleScopes) add(f *policyFlags, instance string, t fleet.Target, key reconciler.ScopeKey, d *reconciler.Desired) error {
	account := key.Account
	for _, other := range []string{t.Config.AccountID, accountOf(key.RoleARN), f.account} {
		if account == "" {
			account = other
		}
	}
	if account == "" {
		return usage("write accountID into the target, or give --account", "the account of target %s is not known", t.Name)
	}
	region := d.Policy.Region
	plan := t.Config.PlanRoleARN
	for _, a := range []struct {
		access iampolicy.Access
		role   string
	}{{iampolicy.Plan, plan}, {iampolicy.Apply, key.RoleARN}} {
		if a.access == iampolicy.Plan && a.role == "" && !f.plan {
			continue // what applies plans as well
		}
		if a.access == iampolicy.Plan && a.role == "" {
			a.role = key.RoleARN
		}
		of := r.of(a.access, a.role, account, instance, iampolicy.PartitionOf(region))
		of.targets = append(of.targets, t.Name)
		of.add(f, t, d)
		if a.role != "" {
			r.assume = append(r.assume, a.role)
		}
	}
	r.assume = append(r.assume, t.Config.AllowedRoleARNs...)
	return nil
}

// of finds or begins the scope of a role in an account.
func (r *roleScopes) of(a iampolicy.Access, role, account, instance, partition string) *roleScope {
	for _, s := range r.list {
		if s.access == a && s.role == role && s.scope.Account == account {
			return s
		}
	}
	s := &roleScope{access: a, role: role, scope: iampolicy.Scope{Partition: partition, Account: account, Instance: instance}}
	r.list = append(r.list, s)
	return s
}

// add adds what one target needs.
func (r *roleScope) add(f *policyFlags, t fleet.Target, d *reconciler.Desired) {
	r.scope.Regions = append(r.scope.Regions, d.Policy.Region)
	r.scope.KMSKeys = append(r.scope.KMSKeys, t.Config.KMSKeyARNs...)
	for _, p := range t.Config.SSMPrefixes {
		if !slices.Contains(r.scope.SSMPrefixes, p) {
			r.scope.SSMPrefixes = append(r.scope.SSMPrefixes, p)
		}
	}
	r.scope.Adopt = r.scope.Adopt || f.adopt || t.Config.AllowAdopt
	r.scope.From = f.from
	for _, arn := range f.passRoles {
		r.scope.Pass(arn)
	}
	if d.Set == nil {
		return
	}
	for _, n := range r.scope.Collect(d.Set) {
		if !slices.Contains(r.notes, n) {
			r.notes = append(r.notes, n)
		}
	}
}

// policies makes those that are asked for.
func (r *roleScopes) policies(f *policyFlags) (out []rolePolicy) {
	order := []iampolicy.Access{iampolicy.Plan, iampolicy.Apply}
	for _, a := range order {
		for _, s := range r.list {
			if s.access == a && f.wants(a) {
				slices.Sort(s.targets)
				out = append(out, newRolePolicy(a, s.role, sorted(s.scope), s.targets, s.notes))
			}
		}
	}
	if len(r.assume) > 0 && f.wants(iampolicy.Daemon) {
		out = append(out, newRolePolicy(iampolicy.Daemon, "", iampolicy.Scope{AssumeRoles: r.assume}, nil, nil))
	}
	return out
}

// sorted names each region of a scope once.
func sorted(s iampolicy.Scope) iampolicy.Scope {
	s.Regions = slices.Compact(slices.Sorted(slices.Values(s.Regions)))
	return s
}

// accountOf is the account in a role's ARN, empty if the ARN names no account.
func accountOf(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	return parts[4]
}
