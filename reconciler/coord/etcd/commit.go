package etcd

import (
	"context"
	"encoding/json"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Commit implements coord.Store. Most transactions can express all their conditions without a read.
// Otherwise Commit reads the keys that the transaction depends on, and writes on the condition that their
// revisions have not changed.
func (s *Store) Commit(ctx context.Context, t coord.Txn) error {
	writes, err := s.keys.writes(t)
	if err != nil {
		return err
	}
	c := &contents{s: s, keys: s.keys.dependsOn(t)}
	ifs := s.expected(t)
	if ifs == nil {
		if err := c.read(ctx); err != nil {
			return err
		}
	}
	for {
		if c.kvs != nil {
			refused := t.Check(c)
			if c.err != nil {
				return c.err
			}
			if refused != nil {
				return refused
			}
			ifs = c.unchanged()
		}
		r, err := s.txn(ctx, ifs, writes, gets(c.keys))
		if err != nil {
			return s.explain(err)
		}
		if r.Succeeded {
			s.wrote(t, r.Header.Revision)
			return nil
		}
		c.are(found(r))
	}
}

// logged is a log as this process last wrote it.
type logged struct {
	session  string
	n        int64
	revision int64
}

func (s *Store) wrote(t coord.Txn, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = logged{t.Session, t.Log.N, revision}
}

// expected returns the conditions of t as comparisons that need no read. It returns nil if they cannot be
// expressed that way.
func (s *Store) expected(t coord.Txn) []clientv3.Cmp {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last.session != t.Session || last.n != t.Was || len(t.Take) > 0 {
		return nil
	}
	ifs := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(s.keys.log(coord.SlotOf(t.Session))), "=", last.revision),
		clientv3.Compare(clientv3.CreateRevision(s.keys.session(t.Session)), ">", 0),
	}
	for _, o := range t.Held {
		owner, err := json.Marshal(o) // in the form in which it was taken
		if err != nil {
			return nil
		}
		ifs = append(ifs, clientv3.Compare(clientv3.Value(s.keys.owner(o.Key)), "=", string(owner)))
	}
	for _, op := range t.Ops {
		switch op.If {
		case coord.Any:
		case 0:
			ifs = append(ifs, clientv3.Compare(clientv3.CreateRevision(s.keys.record(op.Key)), "=", 0))
		default: // a version is only part of the value
			return nil
		}
	}
	return ifs
}

// writes returns the writes of a transaction: the log of its session, the owners of taken keys, and the
// records.
func (l layout) writes(t coord.Txn) ([]clientv3.Op, error) {
	log, err := json.Marshal(t.Log)
	if err != nil {
		return nil, err
	}
	writes := []clientv3.Op{clientv3.OpPut(l.log(coord.SlotOf(t.Session)), string(log))}
	for _, taking := range t.Take {
		owner, err := json.Marshal(taking.Owner)
		if err != nil {
			return nil, err
		}
		writes = append(writes, clientv3.OpPut(l.owner(taking.Owner.Key), string(owner)))
	}
	for _, op := range t.Ops {
		if op.Delete {
			writes = append(writes, clientv3.OpDelete(l.record(op.Key)))
		} else {
			writes = append(writes, clientv3.OpPut(l.record(op.Key), encode(op.Value, t.Version())))
		}
	}
	return writes, nil
}

// contents has the keys that a transaction depends on, at one revision.
type contents struct {
	s    *Store
	keys []string
	kvs  map[string]*mvccpb.KeyValue // nil before the read; an entry is nil if the key does not exist
	err  error
}

// dependsOn returns the keys that a transaction depends on. For records the versions would be enough, but
// etcd cannot read only a part of a value.
func (l layout) dependsOn(t coord.Txn) []string {
	keys := []string{l.log(coord.SlotOf(t.Session)), l.session(t.Session)}
	for _, o := range t.Held {
		keys = append(keys, l.owner(o.Key))
	}
	for _, taking := range t.Take {
		keys = append(keys, l.owner(taking.Owner.Key))
		if dead := taking.Dead(); dead != "" {
			keys = append(keys, l.session(dead))
		}
	}
	for _, op := range t.Ops {
		if op.If != coord.Any {
			keys = append(keys, l.record(op.Key))
		}
	}
	return keys
}

func (c *contents) read(ctx context.Context) error {
	kvs, err := c.s.gets(ctx, c.keys)
	c.are(kvs)
	return err
}

func (c *contents) are(kvs []*mvccpb.KeyValue) {
	c.kvs = map[string]*mvccpb.KeyValue{}
	for i, kv := range kvs {
		c.kvs[c.keys[i]] = kv
	}
}

// unchanged returns the condition that none of the keys has changed.
func (c *contents) unchanged() (ifs []clientv3.Cmp) {
	for _, key := range c.keys {
		ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(key), "=", c.rev(key)))
	}
	return ifs
}

func (c *contents) rev(key string) int64 {
	if kv := c.kvs[key]; kv != nil {
		return kv.ModRevision
	}
	return 0
}

func (c *contents) decode(key string, into any) {
	kv := c.kvs[key]
	if kv == nil {
		return
	}
	if err := json.Unmarshal(kv.Value, into); err != nil {
		c.err = errors.Join(c.err, unreadable(kv, err))
	}
}

// Alive implements coord.Contents.
func (c *contents) Alive(session string) bool { return c.kvs[c.s.keys.session(session)] != nil }

// Log implements coord.Contents.
func (c *contents) Log(slot int) (log coord.Log) {
	c.decode(c.s.keys.log(slot), &log)
	return log
}

// Owner implements coord.Contents.
func (c *contents) Owner(key string) (o coord.Owner) {
	c.decode(c.s.keys.owner(key), &o)
	return o
}

// Version implements coord.Contents.
func (c *contents) Version(key string) int64 {
	kv := c.kvs[c.s.keys.record(key)]
	if kv == nil {
		return 0
	}
	r, err := decode(key, kv)
	c.err = errors.Join(c.err, err)
	return r.Version
}
