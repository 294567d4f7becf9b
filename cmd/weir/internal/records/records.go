// Package records opens the records of an instance for commands, in any of their places: in a state
// directory that no daemon has open, or in the engine that several daemons share, which a command joins as
// a member that owns nothing.
package records

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/cmd/weir/internal/statedir"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/files"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/history"
)

// place is an opened place of records, for a move.
type place struct {
	state.Place
	// alone returns an error if a daemon may write to the place.
	alone func() error
	// keyOf and setKey read and write an instance's keys in the place.
	keyOf  func(ctx context.Context, use string) ([]byte, error)
	setKey func(ctx context.Context, use string, key []byte) error
	close  func() error
}

// Name describes the place of the records of a configuration. A move stores the name in both places and
// compares it when the command runs again, so the text does not change.
func Name(c *config.Config) string {
	switch shared := c.Coordination; shared.Engine() {
	case "dynamodb":
		return fmt.Sprintf("DynamoDB's table %s in %s", shared.DynamoDB.Table, shared.DynamoDB.Region)
	case "etcd":
		return "etcd at " + strings.Join(shared.Etcd.Endpoints, ", ")
	}
	return "the state directory " + c.StateDir
}

// Move moves the records of an instance from one configuration's place to another's.
func Move(ctx context.Context, old, next *config.Config) (err error) {
	from, err := open(ctx, old)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	to, err := open(ctx, next)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.close()) }()
	return state.Move(from.Place, to.Place, history.Logs, from.alone, func() error {
		for _, use := range []string{keys.Digest, keys.Session} {
			key, err := from.keyOf(ctx, use)
			if err == nil {
				err = to.setKey(ctx, use, key)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// open opens the records of a configuration for a command: those in the engine if the instance has one, else
// those in the state directory, which must not be in use.
func open(ctx context.Context, c *config.Config) (*place, error) {
	if c.Several() {
		return openEngine(ctx, c)
	}
	dir, err := statedir.Open(c.StateDir)
	if err != nil {
		return nil, err
	}
	db, err := state.OpenToMove(dir.Name)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if err := state.CheckInstance(db, c.Instance); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", Name(c), err), db.Close(), dir.Close())
	}
	file := func(use string) string { return filepath.Join(dir.Name, use+".key") }
	return &place{
		Place: state.Place{Movable: db, Name: Name(c)},
		alone: func() error { return nil }, // the directory is locked
		keyOf: func(_ context.Context, use string) ([]byte, error) {
			if use == keys.Session {
				return access.Key(dir.Name)
			}
			return statedir.DigestKey(dir.Name)
		},
		setKey: func(_ context.Context, use string, key []byte) error { return files.WriteKey(file(use), key) },
		close:  func() error { return errors.Join(db.Close(), dir.Close()) },
	}, nil
}

const (
	// commandPrefix is the prefix of the names of members that are commands.
	commandPrefix = "command-"
	// commandsWithin is the maximum wait for other commands, including killed ones.
	commandsWithin = 2 * coord.TTL
)

// openEngine opens the records in the engine, as a member of the instance.
func openEngine(ctx context.Context, c *config.Config) (*place, error) {
	m, err := join(ctx, c)
	if err != nil {
		return nil, err
	}
	store, err := state.OpenSharedToMove(ctx, m, m.name)
	if err != nil {
		return nil, errors.Join(err, m.leave())
	}
	ring, err := engine.Keys(c, store)
	if err != nil {
		return nil, errors.Join(err, m.leave())
	}
	return &place{
		Place:  state.Place{Movable: store, Name: Name(c)},
		alone:  func() error { return m.alone(ctx) },
		keyOf:  func(ctx context.Context, use string) ([]byte, error) { return ring.Key(ctx, use, nil) },
		setKey: ring.Set,
		close:  m.leave,
	}, nil
}

// member is a command as a member of an instance. It implements state.Engine.
type member struct {
	reader
	name    string
	session *coord.Session
	stop    context.CancelFunc
	renewed sync.WaitGroup
}

// join joins the instance as a member that owns no scopes, and renews its session until leave.
func join(ctx context.Context, c *config.Config) (*member, error) {
	e, err := engine.Open(ctx, c, nil, nil)
	if err != nil {
		return nil, err
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	m := &member{name: commandPrefix + hex.EncodeToString(random[:]), reader: newReader(e)}
	if m.session, err = e.Join(ctx, coord.Member{Name: m.name, Draining: true}, coord.TTL); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.renewed.Go(func() {
		for every := time.NewTicker(coord.RenewEvery); ; {
			select {
			case <-renewing.Done():
				every.Stop()
				return
			case <-every.C:
				_ = m.session.Renew(renewing) // the next write reports the error
			}
		}
	})
	return m, nil
}

func (m *member) leave() error {
	m.stop()
	m.renewed.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), coord.TTL)
	defer cancel()
	return errors.Join(m.session.Leave(ctx), m.engine.Close())
}

// alone returns an error if a daemon is alive. It waits for commands.
func (m *member) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandsWithin)
	defer cancel()
	for {
		alive, err := m.engine.Members(ctx)
		if err != nil {
			return fmt.Errorf("see who shares the work: %w", err)
		}
		var daemons []string
		others := len(alive) - 1
		for _, a := range alive {
			if !strings.HasPrefix(a.Member.Name, commandPrefix) {
				daemons = append(daemons, a.Member.Name)
			}
		}
		switch {
		case len(daemons) > 0:
			return fmt.Errorf("stop all daemons of the instance first: %s", strings.Join(daemons, ", "))
		case others == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("another command uses the records: run this one again once that is done")
		case <-time.After(time.Second):
		}
	}
}

// Commit implements state.Engine.
func (m *member) Commit(ctx context.Context, ops []coord.Op) error {
	_, err := m.session.Write(ctx, coord.Write{Ops: ops})
	return err
}

// Open opens the records of an instance whose daemons do not answer. done closes them.
func Open(ctx context.Context, c *config.Config) (store state.Store, done func() error, err error) {
	if !c.Several() {
		dir, err := statedir.Open(c.StateDir)
		if err != nil {
			return nil, nil, err
		}
		db, err := state.Open(dir.Name)
		if err != nil {
			return nil, nil, errors.Join(err, dir.Close())
		}
		if err := state.Claim(db, c.Instance); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", Name(c), err), db.Close(), dir.Close())
		}
		return db, func() error { return errors.Join(db.Close(), dir.Close()) }, nil
	}
	m, err := join(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	shared, err := state.OpenShared(ctx, m, m.name)
	if err != nil {
		return nil, nil, errors.Join(err, m.leave())
	}
	return shared, m.leave, nil
}
