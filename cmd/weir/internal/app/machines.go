package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// machines reads EC2 instances when somebody asks for them.
type machines struct {
	passes *passes
	// accounts contains the accounts and regions of this daemon. others opens those that another member owns.
	accounts, others *accounts.Set
	redact           func(string) string
}

// read reads instances from the account and region of a target. For a single instance, it also reads the group
// and the template version.
func (m machines) read(ctx context.Context, target string, ids []string) (found []observed.Machine, err error) {
	cloud, err := m.cloud(ctx, target)
	if err != nil {
		return nil, err
	}
	if len(ids) == 1 {
		found, err = cloud.Machines(ctx, ids[0], true)
	} else {
		found, err = cloud.MachinesOf(ctx, ids)
	}
	if err != nil {
		return nil, errors.New(m.redact(err.Error()))
	}
	for k := range found {
		one := &found[k]
		one.Description = m.redact(one.Description)
		for i := range one.Notes {
			one.Notes[i] = m.redact(one.Notes[i])
		}
	}
	return found, nil
}

// cloud returns a client for the account and region of a target.
func (m machines) cloud(ctx context.Context, target string) (*awscloud.Cloud, error) {
	var keys []reconciler.ScopeKey
	m.passes.read(func(all *memory) { keys = all.scopesOf(target) })
	if len(keys) == 0 {
		return nil, fmt.Errorf("the account and region of target %s are unknown, because weir has not rendered it yet", target)
	}
	if c := m.accounts.Cloud(keys[0]); c != nil {
		return c, nil
	}
	if access := m.others.Open(ctx, keys[0]); access.Err != nil {
		return nil, fmt.Errorf("open account: %s", m.redact(access.Err.Error()))
	}
	if c := m.others.Cloud(keys[0]); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("the account and region of target %s are no longer used", target)
}
