package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/coord"
)

// request is one to DynamoDB.
type request struct {
	call string
	body map[string]any
}

// overheard is a way to the emulator on which somebody listens before a request gets there.
func overheard(t *testing.T, emu *awsemu.Server, listen func(request)) *env {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		heard := request{body: map[string]any{}}
		_, heard.call, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if err := json.Unmarshal(text, &heard.body); err != nil {
			t.Error(err)
		}
		listen(heard)
		r.Body = io.NopCloser(bytes.NewReader(text))
		emu.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	e := at(t, proxy.URL)
	e.emu = emu
	return e
}

// Whatever members do, every read is a consistent one, and no item of a session or an owner is ever deleted or has a time to live: a condition on an
// item that is gone would say nothing.
func TestItemsOfSessionsAndOwnersStay(t *testing.T) {
	here := start(t)
	table := here.table("pk", "sk")
	var mu sync.Mutex
	calls := map[string]int{}
	through := overheard(t, here.emu, func(r request) {
		mu.Lock()
		defer mu.Unlock()
		calls[r.call]++
		switch r.call {
		case "Query":
			if r.body["ConsistentRead"] != true {
				t.Errorf("a read that may be old: %v", r.body)
			}
		case "DescribeTable", "TransactGetItems", "TransactWriteItems", "UpdateItem": // which are consistent
		default:
			t.Errorf("%s is called", r.call)
		}
	})
	stays := map[string]bool{}
	look := func(after string) {
		t.Helper()
		now := map[string]bool{}
		for _, i := range here.scan(table) {
			partition, key := i["pk"].(*types.AttributeValueMemberS).Value, i["sk"].(*types.AttributeValueMemberS).Value
			if partition == "owner" || strings.HasPrefix(key, "session#") {
				now[partition+" "+key] = true
			}
		}
		for name := range stays {
			if !now[name] {
				t.Errorf("after %s %s is gone", after, name)
			}
		}
		maps.Copy(stays, now)
	}
	must := here.must
	a, b := coord.New(through.open(table, nil), coord.Options{}), coord.New(through.open(table, nil), coord.Options{})
	for round := range 2 {
		one, err := a.Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
		must(err)
		two, err := b.Join(t.Context(), coord.Member{Name: "b"}, time.Minute)
		must(err)
		look("two joined")
		seen := coord.Owner{}
		owners, err := a.Owners(t.Context())
		must(err)
		for _, o := range owners {
			seen = o
		}
		o, err := one.Take(t.Context(), "scope", seen)
		must(err)
		_, err = one.Write(t.Context(), coord.Write{Held: []coord.Owner{o}, Ops: []coord.Op{{Key: "k", Value: []byte("v"), If: coord.Any}}})
		must(err)
		look("a write")
		must(two.Announce(t.Context(), coord.Member{Name: "b", Draining: true}))
		must(one.Release(t.Context(), o))
		look("a release")
		o.Released = true
		_, err = two.Take(t.Context(), "scope", o)
		must(err)
		_, err = two.Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "k", Delete: true, If: coord.Any}}})
		must(err)
		must(one.Leave(t.Context()))
		look("one left")
		_, err = a.Get(t.Context(), "k")
		must(err)
		_, _, err = a.List(t.Context(), "", "")
		must(err)
		mirror := coord.NewMirror(a)
		must(mirror.Sync(t.Context()))
		must(two.Leave(t.Context()))
		look("the other left")
		if round == 1 && len(stays) != 3 {
			t.Errorf("there are %v: the slots of two members, and one owner", slices.Sorted(maps.Keys(stays)))
		}
	}
	for _, want := range []string{"Query", "TransactGetItems", "TransactWriteItems", "UpdateItem"} {
		mu.Lock()
		if calls[want] == 0 {
			t.Errorf("%s was not called", want)
		}
		mu.Unlock()
	}
	out, err := here.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	must(err)
	if status := out.TimeToLiveDescription.TimeToLiveStatus; status != types.TimeToLiveStatusDisabled {
		t.Errorf("items live as long as they are told: %s", status)
	}
}

// hand is a clock that a test moves.
type hand struct {
	mu  sync.Mutex
	now coord.Instant
}

func (h *hand) Now() coord.Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = coord.Instant{Mono: h.now.Mono + d, Boot: h.now.Boot + d, Wall: h.now.Wall.Add(d)}
}

// A session is dead when its count stood still for a full lease on the clock of who observes it, whatever time it is elsewhere; and not if it moved
// between the look and the mark.
func TestASessionThatStandsStill(t *testing.T) {
	here := start(t)
	table := here.table("pk", "sk")
	a, err := coord.New(here.open(table, nil), coord.Options{}).Join(t.Context(), coord.Member{Name: "a"}, 10*time.Second)
	here.must(err)
	var before func()
	through := overheard(t, here.emu, func(r request) {
		if r.call == "UpdateItem" && before != nil {
			before()
		}
	})
	clock := &hand{now: coord.Instant{Wall: time.Now()}}
	observer := through.open(table, clock)
	alive := func() bool {
		t.Helper()
		p, err := observer.Poll(t.Context())
		here.must(err)
		return len(p.Alive) == 1
	}
	for _, step := range []struct {
		what   string
		passes time.Duration
		do     func()
		alive  bool
	}{
		{"seen first", 0, nil, true},
		{"almost a lease without a sign", 9999 * time.Millisecond, nil, true},
		{"it was renewed", 0, func() { here.must(a.Renew(t.Context())) }, true},
		{"almost a lease since then", 9999 * time.Millisecond, nil, true},
		{"the time of day is set", 0, func() {
			clock.mu.Lock()
			defer clock.mu.Unlock()
			clock.now.Boot, clock.now.Wall = clock.now.Boot+time.Hour, clock.now.Wall.Add(time.Hour)
		}, true},
		{"it is renewed between the look and the mark", time.Millisecond, func() { before = func() { here.must(a.Renew(t.Context())) } }, true},
		{"nothing for almost a lease", 9999 * time.Millisecond, func() { before = nil }, true},
	} {
		if clock.pass(step.passes); step.do != nil {
			step.do()
		}
		if got := alive(); got != step.alive {
			t.Fatalf("%s: alive %t", step.what, got)
		}
	}
	here.must(a.Renew(t.Context()))
	alive()
	clock.pass(10 * time.Second)
	if alive() {
		t.Error("a full lease without a sign, and it is alive")
	}
	if err := a.Renew(t.Context()); err == nil {
		t.Error("it was marked dead, and is renewed")
	}
}
