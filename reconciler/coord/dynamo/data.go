package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// listItems is the maximum number of items in a page of a list. DynamoDB also ends a page at 1 MB.
const listItems = 100

// gets reads items of one consistent moment, in the order of the keys. A missing item is nil.
func (s *Store) gets(ctx context.Context, keys []item) ([]item, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	in := &dynamodb.TransactGetItemsInput{}
	for _, k := range keys {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: &s.table, Key: k}})
	}
	for tries := 0; ; tries++ {
		s.calls("TransactGetItems")
		out, err := s.client.TransactGetItems(ctx, in)
		var canceled *types.TransactionCanceledException
		switch {
		case err == nil:
			items := make([]item, len(keys))
			for i, r := range out.Responses {
				items[i] = r.Item
			}
			return items, nil
		case len(keys) > 1 && tooLarge(err): // more than 4 MB
			first, err := s.gets(ctx, keys[:len(keys)/2])
			if err != nil {
				return nil, err
			}
			second, err := s.gets(ctx, keys[len(keys)/2:])
			return append(first, second...), err
		case !errors.As(err, &canceled) || !collided(canceled):
			return nil, s.explain(err)
		}
		if pause(ctx, tries) != nil {
			return nil, s.explain(err)
		}
	}
}

func ownerOf(i item) (o coord.Owner, err error) {
	if text := textOf(i, "owner"); text != "" {
		if err = json.Unmarshal([]byte(text), &o); err != nil {
			err = fmt.Errorf("the item of owner %s cannot be read: %w", textOf(i, sortKey), err)
		}
	}
	return o, err
}

// Owners implements coord.Store.
func (s *Store) Owners(ctx context.Context) (all []coord.Owner, err error) {
	err = s.query(ctx, owners, "", nil, 0, nil, func(i item) error {
		o, err := ownerOf(i)
		all = append(all, o)
		return err
	})
	return all, err
}

// OwnersOf implements coord.Store.
func (s *Store) OwnersOf(ctx context.Context, keys []string) (all []coord.Owner, err error) {
	var ask []item
	for _, k := range keys {
		ask = append(ask, key(owners, k))
	}
	items, err := s.gets(ctx, ask)
	for _, i := range items {
		o, err := ownerOf(i)
		if err != nil {
			return nil, err
		}
		if o.Known() {
			all = append(all, o)
		}
	}
	return all, err
}

func recordOf(key string, i item) coord.Record {
	r := coord.Record{Key: key, Version: numberOf(i, "v")}
	if v, ok := i["value"].(*types.AttributeValueMemberB); ok {
		r.Value = v.Value
	}
	return r
}

// Get implements coord.Store.
func (s *Store) Get(ctx context.Context, keys []string) (got []coord.Record, err error) {
	var ask []item
	for _, k := range keys {
		ask = append(ask, key(records, k))
	}
	items, err := s.gets(ctx, ask)
	for n, i := range items {
		got = append(got, recordOf(keys[n], i))
	}
	return got, err
}

// List implements coord.Store.
func (s *Store) List(ctx context.Context, prefix, after string) (page []coord.Record, next string, err error) {
	from, condition, values := max(prefix, after), "", item{}
	switch last := prefix + string(utf8.MaxRune); {
	case from > last:
		return nil, "", nil
	case from != "":
		condition, values = " AND sk BETWEEN :from AND :last", item{":from": text(from), ":last": text(last)}
	}
	more := false
	err = s.query(ctx, records, condition, values, listItems, func() bool { more = len(page) > 0; return more }, func(i item) error {
		if k := textOf(i, sortKey); k != after {
			page = append(page, recordOf(k, i))
		}
		return nil
	})
	if more {
		next = page[len(page)-1].Key
	}
	return page, next, err
}

// Commit implements coord.Store.
func (s *Store) Commit(ctx context.Context, t coord.Txn) error {
	if err := s.checkUsable(); err != nil {
		return err
	}
	ops, err := s.writes(t)
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		if err := s.transact(ctx, ops); !errors.Is(err, errCondition) {
			return err
		}
		// Find out which condition failed. If the data changed meanwhile, the reason may be gone.
		c, err := s.read(ctx, t)
		if err != nil {
			return err
		}
		refused := t.Check(c)
		if c.err != nil {
			return c.err
		}
		if refused != nil {
			return refused
		}
		if err := pause(ctx, tries); err != nil {
			return err
		}
	}
}

// writes returns the items of a transaction: the condition that the session lives, the log, the
// conditions of held and taken keys, and the records.
func (s *Store) writes(t coord.Txn) ([]types.TransactWriteItem, error) {
	slot := coord.SlotOf(t.Session)
	log, err := s.putLog(slot, t.Was, t.Log)
	if err != nil {
		return nil, err
	}
	names := map[string]string{"#id": "id", "#dead": "dead"}
	ops := []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{
			TableName: &s.table, Key: slotItem(sessionKey, slot), ConditionExpression: aws.String("#id = :id AND #dead = :no"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: item{":id": text(t.Session), ":no": truth(false)},
		}},
		{Put: log},
	}
	for _, o := range t.Held {
		condition, names, values := ownerUnchanged(o)
		ops = append(ops, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &s.table, Key: key(owners, o.Key), ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		}})
	}
	for _, taking := range t.Take {
		data, err := json.Marshal(taking.Owner)
		if err != nil {
			return nil, err
		}
		o := taking.Owner
		put := &types.Put{TableName: &s.table, ConditionExpression: aws.String("attribute_not_exists(pk)"), Item: with(key(owners, o.Key), item{
			"session": text(o.Session), "engine": text(o.Epoch.Engine), "epoch": number(o.Epoch.N), "released": truth(o.Released), "owner": text(string(data)),
		})}
		if taking.Seen.Known() {
			condition, names, values := ownerUnchanged(taking.Seen)
			put.ConditionExpression, put.ExpressionAttributeNames, put.ExpressionAttributeValues = &condition, names, values
		}
		ops = append(ops, types.TransactWriteItem{Put: put})
		// A session in this session's own slot was there earlier, and is dead.
		if dead := taking.Dead(); dead != "" && coord.SlotOf(dead) != slot {
			ops = append(ops, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
				TableName: &s.table, Key: slotItem(sessionKey, coord.SlotOf(dead)), ConditionExpression: aws.String("#id <> :id OR #dead = :yes"),
				ExpressionAttributeNames: names, ExpressionAttributeValues: item{":id": text(dead), ":yes": truth(true)},
			}})
		}
	}
	for _, op := range t.Ops {
		ops = append(ops, s.write(op, t.Version()))
	}
	return ops, nil
}

// ownerUnchanged returns the condition that an owner has not changed since it was seen.
func ownerUnchanged(o coord.Owner) (condition string, names map[string]string, values item) {
	return "#session = :session AND #engine = :engine AND #epoch = :epoch AND #released = :released",
		map[string]string{"#session": "session", "#engine": "engine", "#epoch": "epoch", "#released": "released"},
		item{":session": text(o.Session), ":engine": text(o.Epoch.Engine), ":epoch": number(o.Epoch.N), ":released": truth(o.Released)}
}

// write returns the write or deletion of a record, under the condition of op.If. version becomes
// the record's version.
func (s *Store) write(op coord.Op, version int64) types.TransactWriteItem {
	var condition *string
	var names map[string]string
	var values item
	switch op.If {
	case coord.Any:
	case 0:
		condition = aws.String("attribute_not_exists(pk)")
	default:
		condition, names, values = aws.String("#v = :v"), map[string]string{"#v": "v"}, item{":v": number(op.If)}
	}
	if op.Delete {
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &s.table, Key: key(records, op.Key), ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		}}
	}
	value := op.Value
	if value == nil {
		value = []byte{}
	}
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &s.table, ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		Item: with(key(records, op.Key), item{"v": number(version), "value": &types.AttributeValueMemberB{Value: value}}),
	}}
}

// contents has the items that a transaction depends on, at one moment.
type contents struct {
	items map[string]item // by partition and sort key
	err   error
}

// read reads everything that the conditions of a transaction compare, to find out which condition
// failed.
func (s *Store) read(ctx context.Context, t coord.Txn) (*contents, error) {
	slot := coord.SlotOf(t.Session)
	keys := []item{slotItem(sessionKey, slot), slotItem(logKey, slot)}
	for _, o := range t.Held {
		keys = append(keys, key(owners, o.Key))
	}
	for _, taking := range t.Take {
		keys = append(keys, key(owners, taking.Owner.Key))
		if dead := taking.Dead(); dead != "" && coord.SlotOf(dead) != slot {
			keys = append(keys, slotItem(sessionKey, coord.SlotOf(dead)))
		}
	}
	for _, op := range t.Ops {
		if op.If != coord.Any {
			keys = append(keys, key(records, op.Key))
		}
	}
	items, err := s.gets(ctx, keys)
	if err != nil {
		return nil, err
	}
	c := &contents{items: map[string]item{}}
	for n, i := range items {
		c.items[textOf(keys[n], partitionKey)+"/"+textOf(keys[n], sortKey)] = i
	}
	return c, nil
}

// Alive implements coord.Contents.
func (c *contents) Alive(session string) bool {
	i := c.items[polled+"/"+slotKey(sessionKey, coord.SlotOf(session))]
	return textOf(i, "id") == session && alive(i)
}

// Log implements coord.Contents.
func (c *contents) Log(slot int) coord.Log {
	log, err := logOf(c.items[polled+"/"+slotKey(logKey, slot)])
	c.err = errors.Join(c.err, err)
	return log
}

// Owner implements coord.Contents.
func (c *contents) Owner(key string) coord.Owner {
	o, err := ownerOf(c.items[owners+"/"+key])
	c.err = errors.Join(c.err, err)
	return o
}

// Version implements coord.Contents.
func (c *contents) Version(key string) int64 { return numberOf(c.items[records+"/"+key], "v") }
