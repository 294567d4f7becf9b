// Package engine opens the shared engine of several daemons as configured, with their shared keys. Its
// errors contain the remedy, because the reader is the person who set the engine up.
package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/dynamo"
	"github.com/weir-gitops/weir/reconciler/coord/etcd"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/files"
	"github.com/weir-gitops/weir/reconciler/state/keys"
)

// Called receives each call to the engine: its name as in coord.Store, its duration, and its result, which
// is success, error, or refused by the rules of leases and records.
type Called func(operation, result string, took time.Duration)

// Open connects to the etcd or DynamoDB through which the daemons of an instance coordinate, as the
// coordination section of a configuration defines it. It returns nil for a single daemon. The caller closes the
// engine. A nil clock means this machine's clock. called receives each call, and may be nil.
func Open(ctx context.Context, c *config.Config, clock coord.Clock, called Called) (*coord.Engine, error) {
	store, err := open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open coordination: %w", err)
	}
	if store == nil {
		return nil, nil //nolint:nilnil // a single daemon has no engine
	}
	if called != nil {
		store = &counted{store, called}
	}
	return coord.New(store, coord.Options{Clock: clock}), nil
}

// open opens the configured engine, nil for a single daemon.
func open(ctx context.Context, c *config.Config) (coord.Store, error) {
	switch shared := c.Coordination; shared.Engine() {
	case "":
		return nil, nil //nolint:nilnil // as Open
	case "etcd":
		e := shared.Etcd
		return etcd.Open(ctx, etcd.Config{
			Instance: c.Instance, Endpoints: e.Endpoints, CertFile: e.CertFile, KeyFile: e.KeyFile, CAFile: e.CAFile,
			UsernameFile: e.UsernameFile, PasswordFile: e.PasswordFile,
		})
	default:
		d := shared.DynamoDB
		return dynamo.Open(ctx, dynamo.Config{Instance: c.Instance, Table: d.Table, Region: d.Region, EndpointURL: d.EndpointURL})
	}
}

// Keys returns the keys that the daemons of an instance share, which are in their shared records.
func Keys(c *config.Config, store state.Store) (keys.Ring, error) {
	shared, r := c.Coordination, keys.Ring{Store: store, Instance: c.Instance}
	for _, arn := range shared.KMSKeyARNs {
		r.Ciphers = append(r.Ciphers, kmsKey{arn, c.AWS.Endpoint})
	}
	if shared.KeysFile != "" {
		roots, err := files.ReadKeys(shared.KeysFile)
		if err != nil {
			return r, fmt.Errorf("read keysFile: %w", err)
		}
		for _, root := range roots {
			r.Ciphers = append(r.Ciphers, keys.File(root))
		}
	}
	return r, nil
}
