package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/dynamo"
)

// A table that answers reads and takes no writes: whoever wants to write hears the cause, the lease is not renewed, and when it is mended all goes on.
func TestATableThatTakesNoWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		fault awsemu.Fault
		says  []string
	}{
		"denied":    {awsemu.Fault{Kind: awsemu.FailBefore, Code: "AccessDeniedException", Message: "User: x is not authorized to perform: dynamodb:PutItem"}, []string{"not authorized", `"dynamodb:ConditionCheckItem"`}},
		"throttled": {awsemu.Fault{Kind: awsemu.Throttled}, []string{"is throttled", "--billing-mode PAY_PER_REQUEST"}},
		"invalid":   {awsemu.Fault{Kind: awsemu.FailBefore, Code: "ValidationException", Message: "One or more parameter values were invalid"}, []string{"One or more parameter values were invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t)
			table := e.table("pk", "sk")
			engine := coord.New(e.open(table, nil), coord.Options{})
			s, err := engine.Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
			e.must(err)
			o, err := s.Take(t.Context(), "scope", coord.Owner{})
			e.must(err)
			tc.fault.Service, tc.fault.WritesOnly, tc.fault.Times = "dynamodb", true, -1
			mend := e.emu.Faults().Add(tc.fault)
			left := s.Left()
			says := func(what string, err error) {
				t.Helper()
				for _, want := range tc.says {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v, want %q", what, err, want)
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err = s.Write(ctx, coord.Write{Held: []coord.Owner{o}, Ops: []coord.Op{{Key: "k", Value: []byte("v")}}})
			says("a write", err)
			says("a renewal", s.Renew(t.Context()))
			_, err = engine.Join(t.Context(), coord.Member{Name: "b"}, time.Minute)
			says("a join", err)
			_, err = engine.Refuses()
			says("what is shown", err)
			if s.Left() > left {
				t.Errorf("the lease was renewed: %s left", s.Left())
			}
			if alive, err := engine.Members(t.Context()); err != nil || len(alive) != 1 {
				t.Errorf("%v, %v", alive, err)
			}
			mend()
			e.must(s.Renew(t.Context()))
			_, err = s.Write(t.Context(), coord.Write{Held: []coord.Owner{o}, Ops: []coord.Op{{Key: "k", Value: []byte("v"), If: coord.Any}}})
			e.must(err)
			if _, err := engine.Refuses(); err != nil {
				t.Errorf("it takes writes, and is said to refuse them: %v", err)
			}
		})
	}
}

// A table that is deleted beneath a member is missed in words, and nothing of it counts when another one has its name.
func TestATableThatIsDeleted(t *testing.T) {
	e := start(t)
	table := e.table("pk", "sk")
	engine := coord.New(e.open(table, nil), coord.Options{})
	s, err := engine.Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
	e.must(err)
	_, err = e.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table})
	e.must(err)
	for range 200 {
		if err = s.Renew(t.Context()); err != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, read := engine.Members(t.Context())
	for _, err := range []error{err, read} {
		if err == nil || !strings.Contains(err.Error(), "there is no table "+table) || !strings.Contains(err.Error(), "aws dynamodb create-table") {
			t.Errorf("%v", err)
		}
	}
}

// Whoever starts waits for a table that cannot be reached or is throttled, and not for one that is refused or missing.
func TestATableThatIsAway(t *testing.T) {
	e := start(t)
	table := e.table("pk", "sk")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, tc := range map[string]struct {
		client *dynamodb.Client
		table  string
		fault  *awsemu.Fault
		away   bool
	}{
		"nobody answers":  {at(t, gone.URL).client, table, nil, true},
		"cut":             {e.client, table, &awsemu.Fault{Kind: awsemu.CutBefore}, true},
		"throttled":       {e.client, table, &awsemu.Fault{Kind: awsemu.Throttled}, true},
		"a fault of it":   {e.client, table, &awsemu.Fault{Kind: awsemu.FailBefore, Code: "InternalServerError", Message: "an error", Status: 500}, true},
		"denied":          {e.client, table, &awsemu.Fault{Kind: awsemu.FailBefore, Code: "AccessDeniedException", Message: "not authorized"}, false},
		"there is none":   {e.client, "none", nil, false},
		"another's table": {e.client, table, nil, false},
	} {
		mend := func() {}
		if tc.fault != nil {
			tc.fault.Service, tc.fault.Times = "dynamodb", -1
			mend = e.emu.Faults().Add(*tc.fault)
		}
		store, err := dynamo.New(t.Context(), tc.client, dynamo.Config{Instance: "prod", Table: tc.table})
		if err == nil && name == "another's table" {
			_, err = coord.New(store, coord.Options{}).Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
			e.must(err)
			_, err = dynamo.New(t.Context(), tc.client, dynamo.Config{Instance: "staging", Table: tc.table})
		}
		mend()
		var away *coord.AwayError
		if err == nil || errors.As(err, &away) != tc.away {
			t.Errorf("%s: away %t: %v", name, !tc.away, err)
		}
	}
}

// A table is refused for its replicas, and for being a global one of which no replica is told, whatever else is right.
func TestATableWithReplicasIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ more, says string }{
		"none":                {"", ""},
		"an empty list":       {`,"Replicas":[]`, ""},
		"a replica":           {`,"Replicas":[{"RegionName":"eu-central-1"}]`, "has replicas in other regions (eu-central-1)"},
		"a global one":        {`,"GlobalTableVersion":"2019.11.21"`, "has replicas in other regions"},
		"one that is created": {`,"Replicas":[{"RegionName":"us-east-1","ReplicaStatus":"CREATING"}]`, "has replicas in other regions (us-east-1)"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			text := `{"Items":[],"Count":0,"ScannedCount":0}`
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DescribeTable") {
				text = `{"Table":{"TableName":"weir","TableStatus":"ACTIVE","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
					"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]` + tc.more + `}}`
			}
			_, _ = w.Write([]byte(text)) // the client may be gone
		}))
		_, err := dynamo.New(t.Context(), at(t, server.URL).client, dynamo.Config{Instance: "prod", Table: "weir"})
		server.Close()
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}

// Whoever starts waits for a table that is still being created, and not for one that goes.
func TestATableThatIsBeingCreated(t *testing.T) {
	for status, away := range map[string]bool{"CREATING": true, "DELETING": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_, _ = w.Write([]byte(`{"Table":{"TableName":"weir","TableStatus":"` + status + `","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
				"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}}`)) // the client may be gone
		}))
		_, err := dynamo.New(t.Context(), at(t, server.URL).client, dynamo.Config{Instance: "prod", Table: "weir"})
		server.Close()
		var waits *coord.AwayError
		if err == nil || errors.As(err, &waits) != away {
			t.Errorf("%s: waits %t: %v", status, !away, err)
		}
	}
}

// later is a clock that is ahead of this machine's.
type later struct{ by atomic.Int64 }

func (c *later) Now() coord.Instant {
	now := coord.Machine{}.Now()
	by := time.Duration(c.by.Load())
	now.Mono, now.Boot, now.Wall = now.Mono+by, now.Boot+by, now.Wall.Add(by)
	return now
}

// TestATableThatGetsReplicas while members use it is refused as one that had them when they began, within a minute: what they
// own ends with their leases. Once the replicas are gone it is taken again. Looks cost one call a minute, and one that fails ends nothing.
func TestATableThatGetsReplicas(t *testing.T) {
	e := start(t)
	table, clock := e.table("pk", "sk"), &later{}
	store := e.open(table, clock)
	looks := 0
	store.Counting(func(name string) {
		if name == "DescribeTable" {
			looks++
		}
	})
	engine := coord.New(store, coord.Options{Clock: clock})
	s, err := engine.Join(t.Context(), coord.Member{Name: "a"}, time.Hour)
	e.must(err)
	o, err := s.Take(t.Context(), "scope", coord.Owner{})
	e.must(err)
	// minute is one of a member: it polls all the time.
	minute := func() {
		t.Helper()
		clock.by.Add(int64(time.Minute + time.Second))
		for range 5 {
			if _, err := engine.Members(t.Context()); err != nil {
				t.Fatalf("it cannot be read: %v", err)
			}
		}
	}
	uses := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, written := s.Write(ctx, coord.Write{Held: []coord.Owner{o}, Ops: []coord.Op{{Key: "k", Value: []byte("v"), If: coord.Any}}})
		next, joined := engine.Join(t.Context(), coord.Member{Name: "b"}, time.Hour)
		if joined == nil {
			e.must(next.Leave(t.Context()))
		}
		return errors.Join(s.Renew(t.Context()), written, joined)
	}
	minute()
	if err := uses(); err != nil || looks != 1 {
		t.Errorf("it has none: %v; %d looks in a minute", err, looks)
	}
	e.replicate(table)
	if err := uses(); err != nil {
		t.Errorf("nobody has looked yet: %v", err)
	}
	remove := e.emu.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "dynamodb", Operation: "DescribeTable", Times: -1, Code: "AccessDeniedException"})
	minute()
	if err := uses(); err != nil || looks != 2 {
		t.Errorf("nobody may look: %v; %d looks in two minutes", err, looks)
	}
	remove()
	minute()
	left := s.Left()
	err = uses()
	if err == nil || strings.Count(err.Error(), "has replicas in other regions (eu-central-1), which do not see each other's writes: use a table without replicas") < 3 || looks != 3 || s.Left() > left {
		t.Errorf("it has one: %v; %d looks in three minutes, the lease has %s of %s left", err, looks, s.Left(), left)
	}
	if _, why := engine.Refuses(); why == nil || !strings.Contains(why.Error(), "has replicas") {
		t.Errorf("what is shown: %v", why)
	}
	e.replicas(table, types.ReplicationGroupUpdate{Delete: &types.DeleteReplicationGroupMemberAction{RegionName: aws.String("eu-central-1")}})
	for range 100 {
		if minute(); s.Renew(t.Context()) == nil && uses() == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("it has none any more: %v", uses())
}
