package plan

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

func asItIs(r *Report) *Report { return r }

// fillAll gives every member that there is a value of its own, so that one that a record
// loses is seen, whenever it was added.
func fillAll(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, *n, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fillAll(v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillAll(v.Index(0), n)
		fillAll(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillAll(key, n)
		fillAll(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text-", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n % 100))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 100))
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[any]() {
			v.Set(reflect.ValueOf(any(map[string]any{"a": []any{"b", 3.5, true, nil}})))
		}
	default:
	}
}

// whole is a report with something everywhere.
func whole() *Report {
	var n int
	r := &Report{}
	fillAll(reflect.ValueOf(r).Elem(), &n)
	r.Plan.Digested, r.Plan.Secretless = "", false
	r.Plan.pools = model.PoolPlans{{Key: intent.Key{Namespace: "default", Name: "web"}, Behind: true, Reviewed: "0123"}}
	for i := range r.Plan.Steps {
		s := &r.Plan.Steps[i]
		s.Held = step.HeldPaused
		s.Do = step.DeleteNodegroup{NodegroupName: observed.NodegroupName{Cluster: "demo", Name: "secret-in-an-action"}}
		r.Outcomes[i].Step = *s
		r.Outcomes[i].Err.Err = errors.New("secret-in-a-cause")
	}
	r.Diagnostics[0].Severity, r.Diagnostics[1].Severity = 1, 0
	r.Plan.Diagnostics = r.Diagnostics
	r.Err = fmt.Errorf("open account: %w", &observed.Error{Kind: observed.Denied, Service: "sts", Operation: "AssumeRole", Code: "AccessDenied", Err: errors.New("secret-in-a-cause")})
	return r
}

// A target's record holds all that other members show of it and rely on, and nothing with which they could do harm.
func TestAReportIsReadAsItWasWritten(t *testing.T) {
	r := whole()
	data, err := r.Record(asItIs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	want, bare := *r, []string{"Do", "Stamp", "Seen", "Wanted", "Rollout", "Toward", "Fingerprint", "Stops"}
	want.Milestones = nil
	opts := cmp.Options{
		cmp.AllowUnexported(Plan{}), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(Plan{}, "resolved", "held", "Digested"),
		cmpopts.IgnoreFields(step.Step{}, bare...), cmpopts.IgnoreFields(step.Change{}, "Object", "Path"),
		cmpopts.IgnoreFields(observed.Error{}, "Err"), cmpopts.IgnoreFields(Report{}, "Err"), cmpopts.IgnoreFields(observed.TemplateRef{}, "Content"),
	}
	if d := cmp.Diff(&want, got, opts); d != "" {
		t.Errorf("-written +read:\n%s", d)
	}
	var call *observed.Error
	if got.Err.Error() != r.Err.Error() {
		t.Errorf("the error is %q", got.Err)
	}
	if !errors.As(got.Err, &call) || call.Kind != observed.Denied {
		t.Errorf("the error is %#v", got.Err)
	}
	if got.Plan.Digest() != r.Plan.Digest() || got.Plan.Holding().Sum != r.Plan.Holding().Sum || got.Plan.Holding().Sum == "" {
		t.Errorf("digest %s, holding %+v: want %s, %+v", got.Plan.Digest(), got.Plan.Holding(), r.Plan.Digest(), r.Plan.Holding())
	}
	if a, b := (Standing{}).After(r), (Standing{}).After(got); !reflect.DeepEqual(a, b) {
		t.Errorf("those that wait for it go by\n%+v, not\n%+v", b, a)
	}
	for _, s := range got.Plan.Steps {
		if s.Do != nil || s.Seen != nil || s.Wanted != nil {
			t.Errorf("step %s has an action", s.Name)
		}
	}
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), "secret-in") {
		t.Errorf("%v: %s", err, text)
	}
}

// The words for a failure depend on its kind.
func TestARecordTellsFailuresApart(t *testing.T) {
	for _, err := range []error{ErrSource, context.Canceled, context.DeadlineExceeded} {
		data, failed := (&Report{Target: "a", Err: fmt.Errorf("x: %w", err)}).Record(asItIs)
		got, read := ReadRecord(data)
		if failed != nil || read != nil || !errors.Is(got.Err, err) || got.Err.Error() != "x: "+err.Error() {
			t.Errorf("%v: %v, %v", err, got, errors.Join(failed, read))
		}
	}
}

// Only the time of a pass, and how long it took, are no news.
func TestWhatIsNoNewsToOthers(t *testing.T) {
	same := func(r *Report) string {
		data, err := r.Same(asItIs)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	a, b := whole(), whole()
	b.StartedAt, b.Duration, b.Outcomes[0].Duration = time.Now(), time.Hour, time.Hour
	if same(a) != same(b) {
		t.Error("the time of a pass is news")
	}
	b.Pools[1].ReadyReplicas++
	if same(a) == same(b) {
		t.Error("a machine more is no news")
	}
}

func FuzzReadRecord(f *testing.F) {
	data, err := whole().Record(asItIs)
	if err != nil {
		f.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	_, _ = text.ReadFrom(zipped)
	f.Add(text.Bytes())
	f.Add([]byte(`{"Format":1,"Outcomes":[{"Step":7}]}`))
	f.Add([]byte(`{"Format":1,"Causes":{"-1":"x"},"Plan":{"Later":[-1,9]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, _ = w.Write(text)
		_ = w.Close()
		r, err := ReadRecord(zipped.Bytes())
		if _, raw := ReadRecord(text); raw == nil && err != nil {
			t.Error("text that is not packed is read")
		}
		if err != nil {
			return
		}
		// Any record that was read can be used, shown and written again.
		_ = (Standing{}).After(r)
		_, _ = json.Marshal(r.Shown())
		if _, err := r.Record(asItIs); err != nil {
			t.Error(err)
		}
	})
}

// A small record that unpacks to very much is refused before it fills the memory.
func TestARecordIsBounded(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	zeros := bytes.Repeat([]byte(" "), 1<<20)
	for range longestRecord>>20 + 1 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	if r, err := ReadRecord(bomb.Bytes()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%d bytes are read as %v: %v", bomb.Len(), r, err)
	}
	pools := make([]PoolStatus, 2000)
	for i := range pools {
		pools[i] = PoolStatus{Name: fmt.Sprint("pool-", i), Namespace: "default", Kind: intent.GroupPool, ProviderIDList: []string{fmt.Sprintf("aws:///eu-west-1a/i-%017d", i)}}
	}
	data, err := (&Report{Target: "blue", Pools: pools, Plan: &Plan{}}).Record(asItIs)
	if err != nil || len(data) > 300<<10 {
		t.Errorf("2,000 pools take %d bytes: %v", len(data), err)
	}
}
