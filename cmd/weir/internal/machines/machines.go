// Package machines reads EC2 instances for a daemon when somebody asks for them. Passes do not use it.
package machines

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Reader reads instances from the accounts and regions of targets.
type Reader struct {
	// Scopes returns the accounts and regions of a target. It returns none before the target's first render.
	Scopes func(target string) []reconciler.ScopeKey
	// Accounts opens clients whose calls wait for those of passes.
	Accounts *accounts.Set
	// Redact removes secret values from a text.
	Redact func(string) string
}

// Read reads instances from the account and region of a target. For a single instance, it also reads the group
// and the template version.
func (m Reader) Read(ctx context.Context, target string, ids []string) (found []observed.Machine, err error) {
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
		return nil, errors.New(m.Redact(err.Error()))
	}
	for k := range found {
		one := &found[k]
		one.Group = nil // it may list thousands of instances, and its facts are in the notes
		one.Description = m.Redact(one.Description)
		for i := range one.Notes {
			one.Notes[i] = m.Redact(one.Notes[i])
		}
	}
	return found, nil
}

// cloud returns a client for the account and region of a target.
func (m Reader) cloud(ctx context.Context, target string) (*awscloud.Cloud, error) {
	keys := m.Scopes(target)
	if len(keys) == 0 {
		return nil, fmt.Errorf("the account and region of target %s are unknown, because weir has not rendered it yet", target)
	}
	if access := m.Accounts.Open(ctx, keys[0]); access.Err != nil {
		return nil, fmt.Errorf("open account: %s", m.Redact(access.Err.Error()))
	}
	if c := m.Accounts.Cloud(keys[0]); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("the account and region of target %s are no longer used", target)
}
