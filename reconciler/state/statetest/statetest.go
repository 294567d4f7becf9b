// Package statetest has stores that several members share, for tests.
package statetest

import (
	"context"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
)

// Member is one of several members that share an engine.
type Member struct {
	*state.Shared
	// Mirror is the member's replica. Writes and Sync refresh it.
	Mirror  *coord.Mirror
	engine  *coord.Engine
	session *coord.Session
}

// Join makes a member. Its lease lasts longer than the test.
func Join(t testing.TB, store coord.Store, name string) *Member {
	t.Helper()
	m := &Member{engine: coord.New(store, coord.Options{})}
	m.Mirror = coord.NewMirror(m.engine, state.LogPrefix)
	var err error
	if m.session, err = m.engine.Join(t.Context(), coord.Member{Name: name}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if m.Shared, err = state.OpenShared(t.Context(), m, name); err != nil {
		t.Fatal(err)
	}
	return m
}

// Sync reads what other members wrote.
func (m *Member) Sync(t testing.TB) {
	t.Helper()
	if err := m.Mirror.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Replica implements state.Engine.
func (m *Member) Replica() state.Replica { return m.Mirror.Snapshot() }

// Refresh implements state.Engine.
func (m *Member) Refresh(ctx context.Context) error { return m.Mirror.Sync(ctx) }

// Commit implements state.Engine.
func (m *Member) Commit(ctx context.Context, ops []coord.Op) error {
	_, err := m.session.Write(ctx, coord.Write{Ops: ops})
	return err
}

// List implements state.Engine.
func (m *Member) List(ctx context.Context, prefix, after string) ([]coord.Record, string, error) {
	return m.engine.List(ctx, prefix, after)
}
