package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/members"
	"github.com/weir-gitops/weir/status/statustest"
)

// twoMembers returns two members, of which the first shows the page: the second has gone a while
// ago where unowned is not zero.
func twoMembers(unowned time.Duration) func() members.View {
	var w members.Watch
	at := func(session, name, address string) coord.Alive {
		return coord.Alive{Session: session, Member: coord.Member{Name: name, Address: address, Version: "1.4.0"}}
	}
	list := []coord.Alive{at("00.a", "weir-0-x7k2", "https://weir-0:8344")}
	if unowned == 0 {
		list = append(list, at("01.b", "weir-1-p3q9", "https://weir-1:8344/"), at("02.c", "weir-2-m5d1", "javascript:alert(1)"))
		list[1].Member.Clock, list[2].Member.Clock = statustest.Noon.Add(time.Hour), statustest.Noon.Add(200*time.Millisecond)
		list[2].Member.Draining = true
	}
	owner := func(key, session, name string) coord.Owner {
		return coord.Owner{Key: key, Session: session, Member: name, Since: statustest.Noon.Add(-3 * time.Hour), Epoch: coord.Epoch{Engine: "q5n", N: 9}}
	}
	owners := []coord.Owner{
		owner("scope/aws/111122223333/eu-central-1", "00.a", "weir-0-x7k2"), owner("scope/aws/444455556666/eu-central-1", "01.b", "weir-1-p3q9"), owner("source/4be91a7c33d0", "00.a", "weir-0-x7k2"),
	}
	wanted := []members.Wanted{
		{Key: owners[0].Key, Targets: []string{"prod-eu", "prod-us"}}, {Key: owners[1].Key, Targets: []string{"staging", "dev"}}, {Key: owners[2].Key, Targets: []string{"fleet"}},
	}
	w.See(statustest.Noon.Add(-unowned), "weir-0-x7k2", list, owners, wanted)
	v := w.View()
	v.Engine = members.Engine{Kind: "dynamodb", ID: "q5n", Lag: 0.4}
	return func() members.View { return v }
}

func ask(t *testing.T, b *current.State, o Options, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	Handler(b, o).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec
}

func TestMembersAreShown(t *testing.T) {
	b := fleet()
	for path, want := range map[string][]string{
		"/members": {
			"3 members. Every scope and source has an owner.", "Records stored in DynamoDB q5n", "Last read 400 ms ago",
			"weir-0-x7k2 shows this page alive 1 scope, 1 source this one 1.4.0", "weir-1-p3q9 alive 1 scope 1 h ahead 1.4.0", "weir-2-m5d1 draining 0 scopes 200 ms ahead",
			"aws/111122223333/eu-central-1 scope weir-0-x7k2 3 h ago prod-eu , prod-us", "4be91a7c33d0 source weir-0-x7k2 3 h ago fleet",
		},
		"/":                {"Members", "owner weir-0-x7k2", "owner weir-1-p3q9"},
		"/targets/prod-eu": {"Owner weir-0-x7k2 (this one) since 3 h ago"},
		"/targets/staging": {"Owner weir-1-p3q9 since 3 h ago"},
	} {
		rec := ask(t, b, Options{Members: twoMembers(0)}, path)
		for _, w := range want {
			if !strings.Contains(words(rec.Body.String()), w) {
				t.Errorf("%s lacks %q: %s", path, w, words(rec.Body.String()))
			}
		}
		if body := rec.Body.String(); strings.Contains(body, "javascript:") || path == "/members" && !strings.Contains(body, `href="https://weir-1:8344/members"`) {
			t.Errorf("%s leads to the wrong pages: %s", path, body)
		}
	}

	for unowned, want := range map[time.Duration][]string{
		20 * time.Second: {"2 of 3 scopes and sources have an owner. Members are taking the others.", "none last owner: weir-1-p3q9 20 s ago"},
		2 * time.Minute:  {"1 scope or source has no owner.", "none last owner: weir-1-p3q9 2 min ago"},
	} {
		text := words(ask(t, b, Options{Members: twoMembers(unowned)}, "/members").Body.String())
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("unowned for %s lacks %q: %s", unowned, w, text)
			}
		}
	}
	if text := words(ask(t, b, Options{Members: twoMembers(time.Minute)}, "/targets/dev").Body.String()); !strings.Contains(text, "Owner none since 1 min ago , last owner: weir-1-p3q9") {
		t.Errorf("a target without an owner: %s", text)
	}

	slow := twoMembers(0)()
	slow.Engine.Lag = 2.6
	if text := words(ask(t, b, Options{Members: func() members.View { return slow }}, "/members").Body.String()); !strings.Contains(text, "The engine is slow: this member last read the records 2.6 s ago, and writes nothing to AWS meanwhile.") {
		t.Errorf("a slow engine: %s", text)
	}

	refuses := twoMembers(0)()
	refuses.Engine.Refused = "etcdserver: mvcc: database space exceeded: then etcdctl alarm disarm"
	if text := words(ask(t, b, Options{Members: func() members.View { return refuses }}, "/members").Body.String()); !strings.Contains(text, "The engine rejects writes.") || !strings.Contains(text, "then etcdctl alarm disarm") {
		t.Errorf("an engine that refuses writes: %s", text)
	}

	// A daemon that is alone says so, and shows no owners.
	if text := words(get(t, b, "/members").Body.String()); !strings.Contains(text, "One daemon, without coordination.") || !strings.Contains(text, "coordination") {
		t.Errorf("alone: %s", text)
	}
	for _, path := range []string{"/", "/targets/dev"} {
		if text := words(get(t, b, path).Body.String()); strings.Contains(text, "wner ") || strings.Contains(text, "Members") {
			t.Errorf("%s of a daemon that is alone: %s", path, text)
		}
	}
}

func TestMembersForPrograms(t *testing.T) {
	b := testBoard("prod")
	var v members.View
	if err := json.Unmarshal(ask(t, b, Options{Members: twoMembers(0)}, "/api/v1/members").Body.Bytes(), &v); err != nil || len(v.Members) != 3 || len(v.Owned) != 3 || v.Engine.Kind != "dynamodb" {
		t.Errorf("%v: %+v", err, v)
	}
	if err := json.Unmarshal(get(t, b, "/api/v1/members").Body.Bytes(), &v); err != nil || v.Members == nil || v.Owned == nil || v.Engine.Kind != members.Alone {
		t.Errorf("alone: %v: %+v", err, v)
	}
	var s struct {
		Instance string
		Waiting  []string
		members.View
	}
	if err := json.Unmarshal(ask(t, b, Options{Members: twoMembers(0)}, "/status").Body.Bytes(), &s); err != nil || s.Instance != "weir" || len(s.Waiting) != 1 || len(s.Owned) != 3 {
		t.Errorf("%v: %+v", err, s)
	}
}

// Any member can serve as soon as it knows what there is: who owns a target makes its
// first pass, and that may be another one, or nobody yet.
func TestAMemberIsReadyOnceItCanServe(t *testing.T) {
	b := testBoard("prod")
	if rec := ask(t, b, Options{Members: twoMembers(0)}, "/readyz"); rec.Code != http.StatusOK {
		t.Errorf("%d: %s", rec.Code, rec.Body)
	}
	if rec := get(t, b, "/readyz"); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("alone: %d: %s", rec.Code, rec.Body)
	}
	if rec := ask(t, current.New(current.Options{}), Options{Members: twoMembers(0)}, "/readyz"); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("before it knows anything: %d: %s", rec.Code, rec.Body)
	}
}
