package awsemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// maxBody is the largest request body that is read, in bytes.
const maxBody = 1 << 20

// Options configure an emulator. The zero value is usable.
type Options struct {
	Clock    Clock          // nil: the real clock
	Timings  Timings        // zero: Fast()
	Throttle bool           // answer as AWS does when a token bucket is empty
	Quotas   map[string]int // overrides by name; see QuotaNames
	Logger   *slog.Logger   // nil: nothing is logged
}

// Server is the emulator. It is an [http.Handler] that serves all services on
// one port, and safe for concurrent use.
type Server struct {
	clock    Clock
	timings  Timings
	throttle bool
	quotas   map[string]int
	logger   *slog.Logger

	services   map[string]*service
	order      []*service // in seeding order
	timerFuncs map[string]timerFunc

	faults Faults

	mu       sync.Mutex // guards everything below
	state    *state
	now      time.Time
	requests uint64
	buckets  map[string]*tokenBucket
	record   recorder
	snapshot map[string][]byte // region before the last write, while a stale-read fault is armed
}

// New returns an emulator with the seeded account. An unknown quota name or a
// negative quota is an error.
func New(o Options) (*Server, error) {
	s := &Server{
		clock: o.Clock, timings: o.Timings, throttle: o.Throttle, logger: o.Logger,
		services: map[string]*service{}, timerFuncs: map[string]timerFunc{},
		state: newState(), buckets: map[string]*tokenBucket{}, snapshot: map[string][]byte{},
	}
	if s.clock == nil {
		s.clock = realClock{}
	}
	if s.timings == (Timings{}) {
		s.timings = Fast()
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	quotas, err := mergeQuotas(o.Quotas)
	if err != nil {
		return nil, err
	}
	s.quotas = quotas
	s.now = s.clock.Now().UTC()
	for _, sv := range []*service{coreService(), ec2Service(), ssmService(), kmsService(), autoscalingService(), eksService(), stsService(), iamService()} {
		s.add(sv)
	}
	return s, nil
}

func (s *Server) add(sv *service) {
	s.order = append(s.order, sv)
	if sv.Service != nil {
		s.services[sv.Name] = sv
	}
	for kind, f := range sv.timers {
		s.timerFuncs[kind] = f
	}
}

// coreService carries the timers of what belongs to no service.
func coreService() *service {
	return &service{timers: map[string]timerFunc{timerForgetToken: forgetToken}}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, readErr := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if readErr != nil {
		panic(http.ErrAbortHandler) // the client is gone; there is nobody to answer
	}
	call := &Call{Time: s.clock.Now().UTC(), Body: clipBody(body)}
	rq, err := s.identify(r, body, call)
	a := answer{}
	if err == nil {
		a = s.serve(rq, call)
	} else {
		a.err = err
		s.mu.Lock()
		rq.id = s.requestID()
		s.note(call, err)
		s.mu.Unlock()
	}
	if a.delay > 0 && !sleep(r.Context(), a.delay) {
		panic(http.ErrAbortHandler)
	}
	if a.cut {
		panic(http.ErrAbortHandler)
	}
	s.write(w, rq, a.err)
}

// answer is how a call ends, beside what it wrote into its request.
type answer struct {
	err   error
	delay time.Duration
	cut   bool
}

// identify finds service and operation of a request and decodes its form. The
// returned request has at least a service, whose protocol the error takes.
func (s *Server) identify(r *http.Request, body []byte, call *Call) (*request, error) {
	sc, signed := model.ParseCredential(r)
	form := url.Values{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, _ = url.ParseQuery(string(body)) // a fault in it is answered by parseForm
	}
	sv := s.route(r, sc, form)
	if sv == nil {
		name := sc.Service
		if name == "" {
			name = "(not named)"
		}
		unknown := &service{Service: &model.Service{Protocol: "query"}, dialect: queryDialect()}
		return &request{srv: s, svc: unknown, op: &operation{}},
			fail("InvalidAction", "The emulator does not have the service %s", name)
	}
	rq := &request{srv: s, svc: sv, op: &operation{}, body: body, accessKey: sc.Key, query: r.URL.Query()}
	call.Service, call.Region = sv.Name, sc.Region
	if len(body) > maxBody {
		return rq, sv.dialect.tooLarge()
	}
	if err := s.findOperation(r, rq, form, body); err != nil {
		return rq, err
	}
	call.Operation, call.Write = rq.op.name, rq.op.effect == writes
	if !signed || !knownRegion(sc.Region) {
		return rq, sv.dialect.missingAuth()
	}
	return rq, nil
}

func (s *Server) findOperation(r *http.Request, rq *request, form url.Values, body []byte) error {
	sv := rq.svc
	name := ""
	switch sv.Protocol {
	case "rest-json":
		op, labels := sv.Match(r)
		if op == nil {
			return sv.dialect.unknownAction(r.Method+" "+r.URL.Path, sv.Version)
		}
		name, rq.labels = op.Name, labels
	case "json":
		rq.query = nil
		name, _ = strings.CutPrefix(r.Header.Get("X-Amz-Target"), sv.Target+".")
	default:
		p, err := parseForm(string(body), sv.Service, sv.dialect)
		if err != nil {
			return err
		}
		name = p.text("Action")
		if v := p.text("Version"); v != sv.Version {
			return sv.dialect.unknownAction(name, v)
		}
		rq.params = p
	}
	op := sv.ops[name]
	if op == nil {
		return sv.dialect.unknownAction(name, form.Get("Version"))
	}
	rq.op = op
	if rq.params != nil {
		rq.params.shape = op.model.In
	}
	return nil
}

// serve runs a call under the lock.
func (s *Server) serve(rq *request, call *Call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runDue()
	rq.id = s.requestID()
	accountID, err := s.callerAccount(rq.accessKey, rq.svc)
	if err != nil {
		s.note(call, err)
		return answer{err: err}
	}
	call.Time, call.Account = s.now, accountID
	rq.region = s.region(accountID, call.Region)
	return s.run(rq, call)
}

// run lets faults and throttling have their say, then runs the operation.
func (s *Server) run(rq *request, call *Call) answer {
	f := s.faults.take(call, rq)
	a := answer{delay: f.realDelay()}
	switch {
	case f.is(FailBefore):
		a.err = &apiError{Code: f.Code, Message: f.message(), Status: f.Status}
	case f.is(CutBefore):
		a.cut = true
	case f.is(Throttled) || s.throttle && !s.spend(rq):
		a.err = rq.svc.dialect.throttled(rq.op.name)
	case f.is(StaleRead) && rq.op.effect == reads:
		a.err = s.handleStale(rq)
	default:
		if rq.op.effect == writes && s.faults.wantsSnapshots() {
			s.keepSnapshot(rq.region)
		}
		a.err = rq.handle()
		a.cut = f.is(LoseAnswer)
	}
	if f.is(Slow) && f.OnClock {
		s.advance(f.Delay)
	}
	call.Lost = a.cut
	s.note(call, a.err)
	return a
}

// note records a finished call.
func (s *Server) note(call *Call, err error) {
	if err != nil {
		e := asAPIError(err, dialect{})
		call.ErrorCode = e.Code
		var answer *apiError
		if !errors.As(err, &answer) {
			s.logger.Error("serve call", slog.String("operation", call.Operation), slog.Any("error", err))
		}
	}
	s.record.add(*call)
	s.logger.Debug("call", slog.String("service", call.Service), slog.String("operation", call.Operation),
		slog.String("region", call.Region), slog.String("account", call.Account), slog.String("code", call.ErrorCode))
}

func (s *Server) requestID() string {
	s.requests++
	return uuidShape(hashHex(fmt.Sprintf("request|%d", s.requests), 32))
}

// asAPIError returns err as an answer; anything else than an apiError is a fault
// of the emulator itself.
func asAPIError(err error, d dialect) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	if d.internalFailed != nil {
		return d.internalFailed()
	}
	return fail("InternalFailure", "An internal failure has occurred")
}

// write sends the answer in the service's protocol.
func (s *Server) write(w http.ResponseWriter, rq *request, err error) {
	w.Header().Set("X-Amzn-Requestid", rq.id)
	status := http.StatusOK
	var body []byte
	if err != nil {
		e := asAPIError(err, rq.svc.dialect)
		status = e.status()
		body = rq.errorBody(w.Header(), e)
	} else {
		body = rq.answerBody(w.Header())
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		s.logger.Debug("write answer", slog.Any("error", err))
	}
}

// answerBody is the body of an answer without fault.
func (rq *request) answerBody(h http.Header) []byte {
	name := rq.op.name + "Response"
	var w xmlWriter
	switch rq.svc.Protocol {
	case "json", "rest-json":
		h.Set("Content-Type", rq.svc.contentType())
		raw, _ := rq.reply.(json.RawMessage)
		if len(raw) == 0 || string(raw) == "null" {
			raw = json.RawMessage("{}")
		}
		return raw
	case "ec2":
		w.buf = make([]byte, 0, len(rq.xml.buf)+512)
		w.open(name + ` xmlns="` + rq.svc.namespace() + `"`)
		w.text("requestId", rq.id)
		w.buf = append(w.buf, rq.xml.buf...)
	default:
		w.buf = make([]byte, 0, len(rq.xml.buf)+512)
		w.open(name + ` xmlns="` + rq.svc.namespace() + `"`)
		if rq.op.model.Wrapper != "" {
			w.open(rq.op.name + "Result")
			w.buf = append(w.buf, rq.xml.buf...)
			w.close(rq.op.name + "Result")
		}
		w.open("ResponseMetadata")
		w.text("RequestId", rq.id)
		w.close("ResponseMetadata")
	}
	w.close(name)
	h.Set("Content-Type", rq.svc.contentType())
	return w.buf
}

// errorBody is the body of an error answer in the service's envelope.
func (rq *request) errorBody(h http.Header, e *apiError) []byte {
	h.Set("Content-Type", rq.svc.contentType())
	var w xmlWriter
	switch rq.svc.Protocol {
	case "json", "rest-json":
		h.Set("X-Amzn-Errortype", e.Code)
		members := map[string]any{"__type": e.Code, "message": e.Message}
		for name, value := range e.Extra {
			members[name] = value
		}
		body, err := json.Marshal(members)
		if err != nil {
			return []byte(`{"__type":"ServerException"}`)
		}
		return body
	case "ec2":
		w.open("Response")
		w.open("Errors")
		w.open("Error")
		w.text("Code", e.Code)
		w.text("Message", e.Message)
		w.close("Error")
		w.close("Errors")
		w.text("RequestID", rq.id)
		w.close("Response")
	default:
		kind := "Sender"
		if e.status() >= http.StatusInternalServerError {
			kind = "Receiver"
		}
		w.open("ErrorResponse")
		w.open("Error")
		w.text("Type", kind)
		w.text("Code", e.Code)
		w.text("Message", e.Message)
		w.close("Error")
		w.text("RequestId", rq.id)
		w.close("ErrorResponse")
	}
	return w.buf
}

// namespace is that of the service's XML, which ends in a slash whatever the model
// says.
func (sv *service) namespace() string { return strings.TrimSuffix(sv.Namespace, "/") + "/" }

// contentType is what the service's answers carry.
func (sv *service) contentType() string {
	switch sv.Protocol {
	case "ec2":
		return "text/xml;charset=UTF-8"
	case "json":
		return "application/x-amz-json-1.1"
	case "rest-json":
		return "application/json"
	}
	return "text/xml"
}
