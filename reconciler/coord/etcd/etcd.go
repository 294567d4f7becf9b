// Package etcd is the back end of package coord on etcd 3.4 or newer. All keys of an instance start with
// /weir/INSTANCE/, so that instances may share a cluster.
//
// A session is a key that is bound to a lease of etcd. etcd alone decides whether the session is dead, and
// each write has the condition that the key exists. The session counts its remaining time from the sending
// of the renewal (see coord.Session), because the keep-alive answers of etcd's client may be late. Keys of
// owners are bound to no lease: an owner whose session is gone must differ from an owner that released the
// key.
//
// A commit is one etcd transaction. It succeeds directly if the log is as this process left it, and the
// owners are as they were taken. Otherwise, or if that is not enough (for versions, and for the session from
// which a key is taken), Commit reads and checks what the transaction depends on, and requires the same
// revisions when it writes. The engine's id contains etcd's cluster id. A restore from a snapshot creates a
// new cluster id if requested (--initial-cluster-token).
package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// page is the number of records in one page of a list.
const page = 100

// Store stores the data of one instance in etcd.
type Store struct {
	client *clientv3.Client

	// calls receives the name of each request.
	calls func(name string)

	mu   sync.Mutex
	last logged
	keys layout
}

// layout names the keys of the store, and makes operations on them.
type layout struct {
	prefix string
}

var _ coord.Store = (*Store)(nil)

// New returns a store that uses a client, and closes it with Close.
func New(client *clientv3.Client, instance string) *Store {
	return &Store{client: client, keys: layout{"/weir/" + instance + "/"}, calls: func(string) {}}
}

// Counting makes calls receive the name of each request to etcd.
func (s *Store) Counting(calls func(name string)) { s.calls = calls }

// requireLeader makes an etcd member without a quorum fail at once, so that the client tries another one. Otherwise
// that member would keep each request, including renewals, until the request's deadline.
func requireLeader(ctx context.Context) context.Context { return clientv3.WithRequireLeader(ctx) }

// ask repeats a request on the next endpoint if one has no leader, and so has done nothing. The client
// itself repeats only reads.
func (s *Store) ask(do func() error) (err error) {
	for range s.client.Endpoints() {
		if err = do(); !errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader) {
			break
		}
	}
	return err
}

func (s *Store) txn(ctx context.Context, ifs []clientv3.Cmp, then, otherwise []clientv3.Op) (r *clientv3.TxnResponse, err error) {
	err = s.ask(func() error {
		s.calls("Txn")
		r, err = s.client.Txn(requireLeader(ctx)).If(ifs...).Then(then...).Else(otherwise...).Commit()
		return err
	})
	return r, err
}

// The keys. Everything that Poll reads has one prefix.

func (l layout) polled() string           { return l.prefix + "m/" }
func (l layout) engine() string           { return l.polled() + "engine" }
func (l layout) logs() string             { return l.polled() + "log/" }
func (l layout) log(slot int) string      { return l.logs() + fmt.Sprintf("%02x", slot) }
func (l layout) sessions() string         { return l.polled() + "session/" }
func (l layout) session(id string) string { return l.sessions() + id }
func (l layout) owners() string           { return l.prefix + "owner/" }
func (l layout) owner(key string) string  { return l.owners() + key }
func (l layout) records() string          { return l.prefix + "record/" }
func (l layout) record(key string) string { return l.records() + key }
func leaseOf(id string) (clientv3.LeaseID, error) {
	_, random, _ := strings.Cut(id, ".")
	n, err := strconv.ParseUint(random[:min(len(random), 16)], 16, 64)
	if lease := clientv3.LeaseID(n >> 1); err == nil && lease != clientv3.NoLease {
		return lease, nil
	}
	return 0, fmt.Errorf("session %q is none", id)
}

// polledData is the result of a poll, with revisions.
type polledData struct {
	coord.Poll
	rev map[string]int64
}

// poll reads the engine's id, the sessions and the logs, with the revisions of their keys.
func (s *Store) poll(ctx context.Context) (*polledData, error) {
	s.calls("Range")
	r, err := s.client.Get(requireLeader(ctx), s.keys.polled(), clientv3.WithPrefix())
	if err != nil {
		return nil, s.explain(err)
	}
	p := &polledData{Poll: coord.Poll{Logs: map[int]coord.Log{}}, rev: map[string]int64{}}
	for _, kv := range r.Kvs {
		key := string(kv.Key)
		p.rev[key] = kv.ModRevision
		switch {
		case key == s.keys.engine():
			p.Engine = engineID(kv.Value, r.Header.ClusterId)
		case strings.HasPrefix(key, s.keys.logs()):
			var log coord.Log
			slot, err := strconv.ParseUint(strings.TrimPrefix(key, s.keys.logs()), 16, 8)
			if err == nil {
				err = json.Unmarshal(kv.Value, &log)
			}
			if err != nil {
				return nil, unreadable(kv, err)
			}
			p.Logs[int(slot)] = log
		case strings.HasPrefix(key, s.keys.sessions()):
			a := coord.Alive{Session: strings.TrimPrefix(key, s.keys.sessions())}
			if err := json.Unmarshal(kv.Value, &a.Member); err != nil {
				return nil, unreadable(kv, err)
			}
			p.Alive = append(p.Alive, a)
		}
	}
	return p, nil
}

func engineID(stored []byte, cluster uint64) string { return fmt.Sprintf("%s.%x", stored, cluster) }

func unreadable(kv *mvccpb.KeyValue, err error) error {
	return fmt.Errorf("etcd's key %s cannot be read: %w", kv.Key, err)
}

func (p *polledData) alive(session string) bool {
	return slices.ContainsFunc(p.Alive, func(a coord.Alive) bool { return a.Session == session })
}

// Poll implements coord.Store.
func (s *Store) Poll(ctx context.Context) (coord.Poll, error) {
	p, err := s.poll(ctx)
	if err != nil {
		return coord.Poll{}, err
	}
	return p.Poll, nil
}

// Enter implements coord.Store. The lease's id is derived from the session's id, so that every member can
// name it.
func (s *Store) Enter(ctx context.Context, random string, m coord.Member, ttl time.Duration) (coord.Entered, error) {
	lease, err := leaseOf("." + random)
	if err != nil {
		return coord.Entered{}, err
	}
	member, err := json.Marshal(m)
	if err != nil {
		return coord.Entered{}, err
	}
	granted, err := s.grant(ctx, lease, ttl)
	if err != nil {
		return coord.Entered{}, err
	}
	for {
		p, err := s.poll(ctx)
		if err != nil {
			return coord.Entered{}, err
		}
		e := coord.Entered{TTL: granted}
		for p.alive(p.Logs[e.Slot].Session) {
			e.Slot++
		}
		if e.Slot >= coord.MaxMembers {
			return coord.Entered{}, coord.ErrFull
		}
		before := p.Logs[e.Slot].Session
		e.Log = p.Logs[e.Slot]
		e.Log.Session = coord.SessionID(e.Slot, random)
		log, err := json.Marshal(e.Log)
		if err != nil {
			return coord.Entered{}, err
		}
		ifs := []clientv3.Cmp{s.unchanged(p, s.keys.engine()), s.unchanged(p, s.keys.log(e.Slot))}
		if before != "" {
			ifs = append(ifs, s.unchanged(p, s.keys.session(before)))
		}
		ops := []clientv3.Op{
			clientv3.OpPut(s.keys.log(e.Slot), string(log)),
			clientv3.OpPut(s.keys.session(e.Log.Session), string(member), clientv3.WithLease(lease)),
		}
		if p.Engine == "" {
			ops = append(ops, clientv3.OpPut(s.keys.engine(), random[:12]))
		}
		r, err := s.txn(ctx, ifs, ops, nil)
		if err != nil {
			return coord.Entered{}, s.explain(err)
		}
		if r.Succeeded {
			if e.Engine = p.Engine; e.Engine == "" {
				e.Engine = engineID([]byte(random[:12]), r.Header.ClusterId)
			}
			return e, nil
		}
	}
}

func (s *Store) unchanged(p *polledData, key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", p.rev[key])
}

// grant makes a lease with an id. An earlier attempt may have made it already.
func (s *Store) grant(ctx context.Context, id clientv3.LeaseID, ttl time.Duration) (time.Duration, error) {
	seconds := int64((ttl + time.Second - 1) / time.Second)
	var r *etcdserverpb.LeaseGrantResponse
	err := s.ask(func() (err error) {
		s.calls("LeaseGrant")
		r, err = clientv3.RetryLeaseClient(s.client).LeaseGrant(requireLeader(ctx), &etcdserverpb.LeaseGrantRequest{ID: int64(id), TTL: seconds})
		return err
	})
	switch {
	case errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseExist):
		return s.keepAlive(ctx, id)
	case err != nil:
		return 0, s.explain(err)
	}
	return time.Duration(r.TTL) * time.Second, nil
}

// keepAlive renews a lease once. The client's own KeepAliveOnce would retry without a pause while etcd does
// not answer.
func (s *Store) keepAlive(ctx context.Context, id clientv3.LeaseID) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx) // cancel ends the streams
	defer cancel()
	var r *etcdserverpb.LeaseKeepAliveResponse
	err := s.ask(func() error {
		s.calls("LeaseKeepAlive")
		stream, err := clientv3.RetryLeaseClient(s.client).LeaseKeepAlive(requireLeader(ctx))
		if err == nil {
			err = stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)})
		}
		// If an answer came before the request, such as from a member without a leader, Send reports only
		// the end of the stream. Recv returns that answer.
		if err == nil || errors.Is(err, io.EOF) {
			r, err = stream.Recv()
		}
		return err
	})
	switch {
	case err != nil:
		return 0, s.explain(err)
	case r.TTL <= 0:
		return 0, coord.ErrLost
	}
	return time.Duration(r.TTL) * time.Second, nil
}

// Renew implements coord.Store.
func (s *Store) Renew(ctx context.Context, session string, m *coord.Member) (time.Duration, error) {
	lease, err := leaseOf(session)
	if err != nil {
		return 0, err
	}
	if m != nil {
		if err := s.publishMember(ctx, session, lease, *m); err != nil {
			return 0, err
		}
	}
	return s.keepAlive(ctx, lease)
}

// publishMember publishes a member's changes.
func (s *Store) publishMember(ctx context.Context, session string, lease clientv3.LeaseID, m coord.Member) error {
	member, err := json.Marshal(m)
	if err != nil {
		return err
	}
	key := s.keys.session(session)
	r, err := s.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), ">", 0)}, []clientv3.Op{clientv3.OpPut(key, string(member), clientv3.WithLease(lease))}, nil)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return coord.ErrLost
	case err != nil:
		return s.explain(err)
	case !r.Succeeded:
		return coord.ErrLost
	}
	return nil
}

// End implements coord.Store.
func (s *Store) End(ctx context.Context, session string) error {
	lease, err := leaseOf(session)
	if err != nil {
		return err
	}
	err = s.ask(func() error {
		s.calls("LeaseRevoke")
		_, err := s.client.Revoke(requireLeader(ctx), lease)
		return err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return s.explain(err)
	}
	return nil
}

// Close implements coord.Store.
func (s *Store) Close() error { return s.client.Close() }
