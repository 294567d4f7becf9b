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

// read reads an instance from the account and region of a target.
func (m machines) read(ctx context.Context, target, id string) (observed.Machine, error) {
	cloud, err := m.cloud(ctx, target)
	if err != nil {
		return observed.Machine{}, err
	}
	found, err := cloud.Machines(ctx, id, true)
	switch {
	case err != nil:
		return observed.Machine{}, errors.New(m.redact(err.Error()))
	case len(found) == 0:
		return observed.Machine{}, errors.New("EC2 no longer has the instance")
	}
	one := found[0]
	one.Description = m.redact(one.Description)
	for i := range one.Notes {
		one.Notes[i] = m.redact(one.Notes[i])
	}
	return one, nil
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
