package etcd

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Owners implements coord.Store.
func (s *Store) Owners(ctx context.Context) ([]coord.Owner, error) {
	s.calls("Range")
	r, err := s.client.Get(requireLeader(ctx), s.keys.owners(), clientv3.WithPrefix())
	if err != nil {
		return nil, s.explain(err)
	}
	return decodeOwners(r.Kvs)
}

func decodeOwners(kvs []*mvccpb.KeyValue) (all []coord.Owner, err error) {
	for _, kv := range kvs {
		var o coord.Owner
		if err := json.Unmarshal(kv.Value, &o); err != nil {
			return nil, unreadable(kv, err)
		}
		all = append(all, o)
	}
	return all, nil
}

// gets reads keys at one revision. A missing key is nil.
func (s *Store) gets(ctx context.Context, keys []string) ([]*mvccpb.KeyValue, error) {
	r, err := s.txn(ctx, nil, gets(keys), nil)
	if err != nil {
		return nil, s.explain(err)
	}
	return found(r), nil
}

func gets(keys []string) []clientv3.Op {
	ops := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		ops[i] = clientv3.OpGet(key)
	}
	return ops
}

// found returns the results of a transaction's reads.
func found(r *clientv3.TxnResponse) []*mvccpb.KeyValue {
	kvs := make([]*mvccpb.KeyValue, len(r.Responses))
	for i, answer := range r.Responses {
		if found := answer.GetResponseRange().Kvs; len(found) > 0 {
			kvs[i] = found[0]
		}
	}
	return kvs
}

// OwnersOf implements coord.Store.
func (s *Store) OwnersOf(ctx context.Context, keys []string) ([]coord.Owner, error) {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = s.keys.owner(key)
	}
	kvs, err := s.gets(ctx, names)
	if err != nil {
		return nil, err
	}
	return decodeOwners(slices.DeleteFunc(kvs, func(kv *mvccpb.KeyValue) bool { return kv == nil }))
}

// A record's value starts with its version.

func encode(value []byte, version int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(version))) + string(value) //nolint:gosec // versions are not negative
}

func decode(key string, kv *mvccpb.KeyValue) (coord.Record, error) {
	if len(kv.Value) < 8 {
		return coord.Record{}, unreadable(kv, errors.New("it is too short"))
	}
	return coord.Record{Key: key, Value: kv.Value[8:], Version: int64(binary.BigEndian.Uint64(kv.Value))}, nil //nolint:gosec // as it was written
}

// Get implements coord.Store.
func (s *Store) Get(ctx context.Context, keys []string) ([]coord.Record, error) {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = s.keys.record(key)
	}
	kvs, err := s.gets(ctx, names)
	if err != nil {
		return nil, err
	}
	got := make([]coord.Record, len(keys))
	for i, key := range keys {
		if got[i].Key = key; kvs[i] != nil {
			if got[i], err = decode(key, kvs[i]); err != nil {
				return nil, err
			}
		}
	}
	return got, nil
}

// List implements coord.Store.
func (s *Store) List(ctx context.Context, prefix, after string) (records []coord.Record, next string, err error) {
	from := s.keys.record(prefix)
	if after >= prefix {
		from = s.keys.record(after) + "\x00"
	}
	s.calls("Range")
	r, err := s.client.Get(requireLeader(ctx), from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.keys.record(prefix))), clientv3.WithLimit(page))
	if err != nil {
		return nil, "", s.explain(err)
	}
	for _, kv := range r.Kvs {
		rec, err := decode(strings.TrimPrefix(string(kv.Key), s.keys.records()), kv)
		if err != nil {
			return nil, "", err
		}
		records = append(records, rec)
	}
	if r.More {
		next = records[len(records)-1].Key
	}
	return records, next, nil
}
