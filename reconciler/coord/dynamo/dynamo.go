// Package dynamo is the back end of package coord on one DynamoDB table. Any billing mode works. The
// partition key is pk and the sort key is sk, both strings. A table belongs to one instance.
//
// DynamoDB has no leases. A session is the item of its slot, and each renewal increments the item's count. A
// session is dead if its count did not change for a full lease on an observer's clock. The observer then
// marks it as dead, on the condition that the count is still the same. From then on the session can neither
// be renewed nor write. Items of sessions and owners are never deleted and have no time to live, because a
// condition on a deleted item would prove nothing.
//
// A write with conditions is one TransactWriteItems, which is retried after a conflict with another
// transaction. Query may read part of a transaction, so TransactGetItems, which reads atomically, reads the
// changes that a poll found.
//
// A table with replicas is refused, because another region's copy accepts writes that this one does not
// know. Each user checks the table once a minute. If the table is no longer acceptable, the user stops
// taking, renewing and writing, so its leases end.
package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// The attributes of the items, and their partitions.
const (
	partitionKey, sortKey = "pk", "sk"

	// polled contains the engine's id (ENGINE), the items of sessions (session#SLOT) and logs (log#SLOT).
	// owners and records contain items under their keys.
	polled, owners, records = "coord", "owner", "record"

	engineKey, sessionKey, logKey = "engine", "session#", "log#"
)

// Store stores the data of one instance in a table.
type Store struct {
	client          *dynamodb.Client
	table, instance string
	// tableID is part of the engine's id, because a restored table is another engine.
	tableID string
	clock   coord.Clock
	explain func(error) error
	calls   func(name string)

	mu sync.Mutex
	// looked is the time of the last check of the table. unfit is the reason for which it cannot be used, or
	// nil.
	looked coord.Instant
	unfit  error
	// seen has the first observation of each session's current count.
	seen map[string]sighting
}

type sighting struct {
	count int64
	since coord.Instant
}

var _ coord.Store = (*Store)(nil)

// Counting makes calls receive the name of each request to DynamoDB.
func (s *Store) Counting(calls func(name string)) { s.calls = calls }

type item = map[string]types.AttributeValue

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func number(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}
func truth(v bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: v} }

func textOf(i item, name string) string {
	v, _ := i[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

func numberOf(i item, name string) int64 {
	v, _ := i[name].(*types.AttributeValueMemberN)
	if v == nil {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func truthOf(i item, name string) bool {
	v, _ := i[name].(*types.AttributeValueMemberBOOL)
	return v != nil && v.Value
}

func key(partition, sort string) item {
	return item{partitionKey: text(partition), sortKey: text(sort)}
}

func with(i item, more item) item {
	maps.Copy(i, more)
	return i
}

func slotKey(kind string, slot int) string { return kind + fmt.Sprintf("%02x", slot) }

func slotItem(kind string, slot int) item { return key(polled, slotKey(kind, slot)) }

// query reads a partition, with a condition on the sort key. stop ends it after a page.
func (s *Store) query(ctx context.Context, partition, condition string, values item, limit int32, stop func() bool, each func(item) error) error {
	in := &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk" + condition), ExpressionAttributeValues: with(item{":pk": text(partition)}, values),
	}
	if limit > 0 {
		in.Limit = &limit
	}
	for {
		s.calls("Query")
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return s.explain(err)
		}
		for _, i := range out.Items {
			if err := each(i); err != nil {
				return err
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 || stop != nil && stop() {
			return nil
		}
	}
}

// polledData is the result of a poll.
type polledData struct {
	engine, instance string
	sessions         map[int]item
	logs             map[int]coord.Log
}

// poll reads the engine's id, the sessions and the logs. It ignores items of a newer weir.
func (s *Store) poll(ctx context.Context) (*polledData, error) {
	p := &polledData{sessions: map[int]item{}, logs: map[int]coord.Log{}}
	err := s.query(ctx, polled, "", nil, 0, nil, func(i item) error {
		sort := textOf(i, sortKey)
		kind, slot, _ := strings.Cut(sort, "#")
		n, err := strconv.ParseUint(slot, 16, 8)
		switch {
		case sort == engineKey:
			p.engine, p.instance = s.engineID(textOf(i, "id")), textOf(i, "instance")
			return nil
		case err != nil:
			return nil // written by a newer weir
		case kind+"#" == sessionKey:
			p.sessions[int(n)] = i
			return nil
		case kind+"#" == logKey:
			p.logs[int(n)], err = logOf(i)
			return err
		}
		return nil
	})
	return p, err
}

func (s *Store) engineID(random string) string { return random + s.tableID }

func logOf(i item) (log coord.Log, err error) {
	if text := textOf(i, "log"); text != "" {
		if err = json.Unmarshal([]byte(text), &log); err != nil {
			err = fmt.Errorf("item %s cannot be read: %w", textOf(i, sortKey), err)
		}
	}
	return log, err
}

func alive(i item) bool { return textOf(i, "id") != "" && !truthOf(i, "dead") }

// Poll implements coord.Store.
func (s *Store) Poll(ctx context.Context) (coord.Poll, error) {
	s.checkTable(ctx)
	p, err := s.poll(ctx)
	if err != nil {
		return coord.Poll{}, err
	}
	out := coord.Poll{Engine: p.engine, Logs: p.logs}
	s.markDead(ctx, p)
	for _, slot := range slices.Sorted(maps.Keys(p.sessions)) {
		i := p.sessions[slot]
		if !alive(i) {
			continue
		}
		a := coord.Alive{Session: textOf(i, "id")}
		if err := json.Unmarshal([]byte(textOf(i, "member")), &a.Member); err != nil {
			return coord.Poll{}, fmt.Errorf("item %s cannot be read: %w", textOf(i, sortKey), err)
		}
		out.Alive = append(out.Alive, a)
	}
	return out, nil
}

// markDead marks sessions as dead whose count did not change for a full lease on this clock.
func (s *Store) markDead(ctx context.Context, p *polledData) {
	now := s.clock.Now()
	var still []int
	s.mu.Lock()
	seen := map[string]sighting{}
	for slot, i := range p.sessions {
		if !alive(i) {
			continue
		}
		id, count := textOf(i, "id"), numberOf(i, "count")
		first, ok := s.seen[id]
		if !ok || first.count != count {
			first = sighting{count, now}
		}
		seen[id] = first
		if now.AtLeast(first.since) >= time.Duration(numberOf(i, "ttl"))*time.Millisecond {
			still = append(still, slot)
		}
	}
	s.seen = seen
	s.mu.Unlock()
	for _, slot := range still {
		i := p.sessions[slot]
		s.calls("UpdateItem")
		_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: slotItem(sessionKey, slot),
			UpdateExpression: aws.String("SET #dead = :yes"), ConditionExpression: aws.String("#id = :id AND #count = :count"),
			ExpressionAttributeNames:  map[string]string{"#dead": "dead", "#id": "id", "#count": "count"},
			ExpressionAttributeValues: item{":yes": truth(true), ":id": i["id"], ":count": i["count"]},
		})
		if err == nil { // otherwise it is alive, until a later poll shows otherwise
			p.sessions[slot] = with(maps.Clone(i), item{"dead": truth(true)})
		}
	}
}

// Enter implements coord.Store.
func (s *Store) Enter(ctx context.Context, random string, m coord.Member, ttl time.Duration) (coord.Entered, error) {
	member, err := json.Marshal(m)
	if err != nil {
		return coord.Entered{}, err
	}
	for {
		if err := s.checkUsable(); err != nil {
			return coord.Entered{}, err
		}
		p, err := s.poll(ctx)
		if err != nil {
			return coord.Entered{}, err
		}
		if p.instance != "" && p.instance != s.instance {
			return coord.Entered{}, &OtherInstanceError{s.table, p.instance, s.instance}
		}
		e := coord.Entered{TTL: ttl, Engine: p.engine}
		for alive(p.sessions[e.Slot]) {
			if textOf(p.sessions[e.Slot], "id") == coord.SessionID(e.Slot, random) { // by an earlier attempt
				e.Log = p.logs[e.Slot]
				return e, nil
			}
			e.Slot++
		}
		if e.Slot >= coord.MaxMembers {
			return coord.Entered{}, coord.ErrFull
		}
		was, before := p.logs[e.Slot].N, textOf(p.sessions[e.Slot], "id")
		e.Log = p.logs[e.Slot]
		e.Log.Session = coord.SessionID(e.Slot, random)
		log, err := s.putLog(e.Slot, was, e.Log)
		if err != nil {
			return coord.Entered{}, err
		}
		session := s.putSession(e, before, string(member))
		ops := []types.TransactWriteItem{{Put: session}, {Put: log}}
		if p.engine == "" {
			e.Engine = s.engineID(random[:12])
			ops = append(ops, types.TransactWriteItem{Put: &types.Put{
				TableName: &s.table, ConditionExpression: aws.String("attribute_not_exists(pk)"),
				Item: with(key(polled, engineKey), item{"id": text(random[:12]), "instance": text(s.instance)}),
			}})
		}
		switch err := s.transact(ctx, ops); {
		case err == nil:
			return e, nil
		case !errors.Is(err, errCondition):
			return coord.Entered{}, err
		}
	}
}

// putSession starts a session in a slot, in place of the dead session before it, if there is one.
func (s *Store) putSession(e coord.Entered, before, member string) *types.Put {
	put := &types.Put{
		TableName: &s.table, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		Item: with(slotItem(sessionKey, e.Slot), item{
			"id": text(e.Log.Session), "count": number(1), "ttl": number(e.TTL.Milliseconds()), "dead": truth(false), "member": text(member),
		}),
	}
	if before != "" {
		put.ConditionExpression = aws.String("#id = :before AND #dead = :yes")
		put.ExpressionAttributeNames = map[string]string{"#id": "id", "#dead": "dead"}
		put.ExpressionAttributeValues = item{":before": text(before), ":yes": truth(true)}
	}
	return put
}

// putLog returns the write of a session's log. was is the number of its last entry, 0 if the log may be new.
func (s *Store) putLog(slot int, was int64, log coord.Log) (*types.Put, error) {
	data, err := json.Marshal(log)
	if err != nil {
		return nil, err
	}
	put := &types.Put{
		TableName: &s.table, ConditionExpression: aws.String("attribute_not_exists(pk) OR #n = :was"),
		ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: item{":was": number(was)},
		Item: with(slotItem(logKey, slot), item{"n": number(log.N), "log": text(string(data))}),
	}
	if was != 0 {
		put.ConditionExpression = aws.String("#n = :was")
	}
	return put, nil
}

// Renew implements coord.Store.
func (s *Store) Renew(ctx context.Context, session string, m *coord.Member) (time.Duration, error) {
	if err := s.checkUsable(); err != nil {
		return 0, err
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: slotItem(sessionKey, coord.SlotOf(session)),
		UpdateExpression: aws.String("SET #count = #count + :one"), ConditionExpression: aws.String("#id = :id AND #dead = :no"),
		ExpressionAttributeNames:  map[string]string{"#id": "id", "#dead": "dead", "#count": "count"},
		ExpressionAttributeValues: item{":id": text(session), ":no": truth(false), ":one": number(1)},
		ReturnValues:              types.ReturnValueAllNew,
	}
	if m != nil {
		member, err := json.Marshal(m)
		if err != nil {
			return 0, err
		}
		in.UpdateExpression = aws.String("SET #count = #count + :one, #member = :member")
		in.ExpressionAttributeNames["#member"] = "member"
		in.ExpressionAttributeValues[":member"] = text(string(member))
	}
	out, err := s.update(ctx, in)
	if errors.Is(err, errCondition) {
		return 0, coord.ErrLost
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(numberOf(out.Attributes, "ttl")) * time.Millisecond, nil
}

// End implements coord.Store.
func (s *Store) End(ctx context.Context, session string) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: slotItem(sessionKey, coord.SlotOf(session)),
		UpdateExpression: aws.String("SET #dead = :yes"), ConditionExpression: aws.String("#id = :id"),
		ExpressionAttributeNames:  map[string]string{"#id": "id", "#dead": "dead"},
		ExpressionAttributeValues: item{":id": text(session), ":yes": truth(true)},
	})
	if errors.Is(err, errCondition) {
		return nil
	}
	return err
}

// Close implements coord.Store.
func (s *Store) Close() error { return nil }
