package awsemu

import (
	"net/url"
	"time"
)

// maxCalls bounds the number of stored calls. The counts include all calls.
const maxCalls = 16384

// maxRecordedBody bounds the stored part of a request's body, in bytes.
const maxRecordedBody = 8192

// Call is one recorded request.
type Call struct {
	Time      time.Time // on the emulator's clock
	Account   string
	Region    string
	Service   string // as in the credential scope: ec2, autoscaling, eks, ssm, sts, iam
	Operation string
	Write     bool   // the operation can change something, and is no dry run
	ErrorCode string // "" for a successful answer
	Lost      bool   // a fault cut the connection instead of answering
	// Bucket names the token bucket of the call, and Left is its content afterwards. Bucket is empty without
	// throttling.
	Bucket string
	Left   float64
	Body   string // the request's body, cut to 8 KiB: a form or JSON
}

// Form returns the call's body as a form, for query protocols.
func (c Call) Form() url.Values {
	form, err := url.ParseQuery(c.Body)
	if err != nil {
		return url.Values{}
	}
	return form
}

// recorder stores the last calls and the number of all calls.
type recorder struct {
	calls  []Call
	next   int // index of the oldest call when the ring is full
	counts map[string]int
}

func (r *recorder) add(c Call) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[c.Service+":"+c.Operation]++
	if len(r.calls) < maxCalls {
		r.calls = append(r.calls, c)
		return
	}
	r.calls[r.next] = c
	r.next = (r.next + 1) % maxCalls
}

func clipBody(body []byte) string {
	if len(body) > maxRecordedBody {
		body = body[:maxRecordedBody]
	}
	return string(body)
}

// Calls returns the recorded calls since the start or the last ResetCalls, the oldest first, at most the
// last 16,384.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Call, 0, len(s.record.calls))
	out = append(out, s.record.calls[s.record.next:]...)
	return append(out, s.record.calls[:s.record.next]...)
}

// CallCounts returns the number of calls of each operation since the start or the last ResetCalls, by
// "service:Operation". Refused calls count too.
func (s *Server) CallCounts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int, len(s.record.counts))
	for name, n := range s.record.counts {
		out[name] = n
	}
	return out
}

// ResetCalls forgets the recorded calls and their counts.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = recorder{}
}
