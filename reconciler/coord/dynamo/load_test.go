package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// The list price of DynamoDB on demand in us-east-1 since November 2024, in dollars for a
// million units.
const (
	writePrice = 0.625
	readPrice  = 0.125
)

// BenchmarkCalls counts what 200 scopes cost that write a result of 2 KB each minute, shared
// by two members: calls a member and minute, and dollars a month for both.
func BenchmarkCalls(b *testing.B) {
	b.Run("at rest", func(b *testing.B) { calls(b, 0) })
	b.Run("a result a minute", func(b *testing.B) { calls(b, 2<<10) })
}

func calls(b *testing.B, size int) {
	const scopes, d = 200, time.Minute
	for b.Loop() {
		emu := start(b).emu
		var mu sync.Mutex
		calls := map[string]int{}
		before := map[string]int(nil)
		done := false
		var reads, writes, readsBefore, writesBefore float64
		proxy := httptest.NewServer(metered(emu, func(call string, units float64) {
			mu.Lock()
			defer mu.Unlock()
			if done {
				return
			}
			switch call {
			case "Query", "TransactGetItems":
				reads += units
			case "UpdateItem", "TransactWriteItems":
				writes += units
			}
		}))
		b.Cleanup(proxy.Close)
		e := at(b, proxy.URL)
		table := e.table("pk", "sk")
		coordtest.Load(b, func(int) coord.Store {
			s := e.open(table, nil)
			s.Counting(func(name string) {
				mu.Lock()
				defer mu.Unlock()
				if !done {
					calls[name]++
				}
			})
			return s
		}, scopes, time.Minute, size, d, func() {
			mu.Lock()
			defer mu.Unlock()
			if before == nil {
				before, readsBefore, writesBefore = maps.Clone(calls), reads, writes
				return
			}
			reads, writes = reads-readsBefore, writes-writesBefore
			done = true
			for name, n := range calls {
				calls[name] = n - before[name]
			}
		})
		minutes := d.Minutes()
		total := 0
		for name, n := range calls {
			total += n
			b.ReportMetric(float64(n)/minutes/2, name+"/member-min")
		}
		month := 30 * 24 * time.Hour
		b.ReportMetric(float64(total)/minutes/2, "calls/member-min")
		b.ReportMetric(reads/minutes/2, "RRU/member-min")
		b.ReportMetric(writes/minutes/2, "WRU/member-min")
		b.ReportMetric((reads*readPrice+writes*writePrice)/1e6*float64(month)/float64(d), "$/month")
	}
}

// metered has DynamoDB say what each request consumed.
func metered(next http.Handler, consumed func(call string, units float64)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if strings.HasSuffix(call, "Items") || call == "Query" || call == "UpdateItem" {
			body = bytes.Replace(body, []byte("{"), []byte(`{"ReturnConsumedCapacity":"TOTAL",`), 1)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		type capacity struct{ CapacityUnits float64 }
		var one struct{ ConsumedCapacity capacity }
		var many struct{ ConsumedCapacity []capacity }
		switch answer := rec.Body.Bytes(); {
		case json.Unmarshal(answer, &one) == nil:
			consumed(call, one.ConsumedCapacity.CapacityUnits)
		case json.Unmarshal(answer, &many) == nil:
			for _, c := range many.ConsumedCapacity {
				consumed(call, c.CapacityUnits)
			}
		}
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()) // the client may be gone
	})
}
