package awsemu

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/iam"
	"github.com/weir-gitops/weir/reconciler/awsemu/model"
	"github.com/weir-gitops/weir/reconciler/awsemu/sts"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// maxBody is the maximum size of a request's body in bytes, if the service has no limit of its own. No such
// limit exceeds maxRead.
const (
	maxBody = 1 << 20
	maxRead = 16 << 20
)

// Options configure an emulator. The zero value is usable.
type Options struct {
	Clock    Clock          // nil: the real clock
	Timings  world.Timings  // zero: Fast()
	Throttle bool           // throttle like AWS
	Account  string         // account of access keys that AssumeRole did not issue; "": 000000000000
	Quotas   map[string]int // overrides by name; see QuotaNames
	Logger   *slog.Logger   // nil: nothing is logged
}

// Server is the emulator. It is an [http.Handler] that serves all services on one port. It is safe for
// concurrent use.
type Server struct {
	clock    Clock
	throttle bool
	own      string // Options.Account
	logger   *slog.Logger

	services map[string]*service                    // by name
	timers   map[string]func(r *region, key string) // by kind

	faults Faults

	mu       sync.Mutex // guards everything below
	world    world.World
	state    *state
	requests uint64
	buckets  map[string]*tokenBucket
	record   recorder
	snapshot map[string][]byte // region before the last write, while a stale-read fault is armed
}

// New returns an emulator with the seeded account. An unknown quota name or a negative quota is an error.
func New(o Options) (*Server, error) {
	s := &Server{
		clock: o.Clock, throttle: o.Throttle, own: cmp.Or(o.Account, iam.DefaultAccount), logger: o.Logger, world: world.World{Timings: o.Timings},
		buckets: map[string]*tokenBucket{}, services: map[string]*service{}, timers: map[string]func(*region, string){},
	}
	if s.clock == nil {
		s.clock = realClock{}
	}
	if o.Timings == (world.Timings{}) {
		s.world.Timings = world.Fast()
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	quotas, err := world.MergeQuotas(o.Quotas)
	if err != nil {
		return nil, err
	}
	s.world.Quotas, s.world.Now = quotas, s.clock.Now().UTC()
	s.use(newState())
	s.addServices()
	return s, nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, readErr := io.ReadAll(io.LimitReader(r.Body, maxRead+1))
	if readErr != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	call := &Call{Time: s.clock.Now().UTC(), Body: clipBody(body)}
	rq, err := s.identify(r, body, call)
	a := answer{}
	if err == nil {
		a = s.serve(rq, call)
	} else {
		a.err = err
		s.mu.Lock()
		rq.ID = s.requestID()
		s.note(call, err)
		s.mu.Unlock()
	}
	if a.delay > 0 && !sleep(r.Context(), a.delay) {
		panic(http.ErrAbortHandler)
	}
	if a.cut {
		panic(http.ErrAbortHandler)
	}
	writeAnswer(s.logger, w, rq, a.err)
}

// answer is the result of a call, besides the content that it wrote into its request.
type answer struct {
	err   error
	delay time.Duration
	cut   bool
}

// identify finds the service and operation of a request and decodes its form. The returned request always
// has a service, whose protocol is used for an error.
func (s *Server) identify(r *http.Request, body []byte, call *Call) (*wire.Exchange, error) {
	sc, signed := model.ParseCredential(r)
	form := url.Values{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, _ = url.ParseQuery(string(body)) // wire.ParseForm reports errors in it
	}
	sv := s.route(r, sc, form)
	if sv == nil {
		name := sc.Service
		if name == "" {
			name = "(not named)"
		}
		unknown := &wire.Service{Service: &model.Service{Protocol: "query"}, Dialect: wire.QueryDialect()}
		return &wire.Exchange{Service: unknown, Operation: &wire.Operation{}},
			wire.Fail("InvalidAction", "The emulator does not have the service %s", name)
	}
	rq := &wire.Exchange{Service: sv.Service, Operation: &wire.Operation{}, Body: body, AccessKey: sc.Key, Query: r.URL.Query()}
	call.Service, call.Region = sv.Name, sc.Region
	if len(body) > cmp.Or(sv.MaxBody, maxBody) {
		return rq, sv.Dialect.TooLarge()
	}
	if err := findOperation(r, rq, form, body); err != nil {
		return rq, err
	}
	call.Operation, call.Write = rq.Operation.Name, rq.Operation.Effect == wire.Writes && form.Get("DryRun") != "true"
	if !signed || !knownRegion(sc.Region) {
		return rq, sv.Dialect.MissingAuth()
	}
	return rq, nil
}

func findOperation(r *http.Request, rq *wire.Exchange, form url.Values, body []byte) error {
	sv := rq.Service
	name := ""
	switch sv.Protocol {
	case "rest-json":
		op, labels := sv.Match(r)
		if op == nil {
			return sv.Dialect.UnknownAction(r.Method+" "+r.URL.Path, sv.Version)
		}
		name, rq.Labels = op.Name, labels
	case "json":
		rq.Query = nil
		if name, rq.CBOR = sv.CBOROperation(r); !rq.CBOR {
			name, _ = strings.CutPrefix(r.Header.Get("X-Amz-Target"), sv.Target+".")
			break
		}
		plain, err := model.JSONOfCBOR(body)
		if err != nil {
			return sv.Dialect.Malformed(err.Error())
		}
		rq.Body = plain
	default:
		f, err := wire.ParseForm(string(body), sv.Dialect)
		if err != nil {
			return err
		}
		name = f.Get("Action")
		if v := f.Get("Version"); v != sv.Version {
			return sv.Dialect.UnknownAction(name, v)
		}
		rq.Form = f
	}
	op := sv.Ops[name]
	if op == nil {
		return sv.Dialect.UnknownAction(name, form.Get("Version"))
	}
	rq.Operation = op
	return nil
}

// serve runs a call under the lock.
func (s *Server) serve(rq *wire.Exchange, call *Call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runDue()
	rq.ID = s.requestID()
	accountID, err := sts.AccountOf(s.state.Keys, rq.AccessKey, s.world.Now, rq.Service.Dialect)
	if err != nil {
		s.note(call, err)
		return answer{err: err}
	}
	if accountID == iam.DefaultAccount {
		accountID = s.own
	}
	call.Time, call.Account = s.world.Now, accountID
	r := s.region(accountID, call.Region)
	rq.Caller, _ = r.sts.Caller(rq.AccessKey)
	s.setRegion(rq, r)
	return s.run(rq, r, call)
}

// setRegion sets the region of an exchange.
func (s *Server) setRegion(rq *wire.Exchange, r *region) {
	rq.World, rq.Part = &r.Region, s.services[rq.Service.Name].part(r)
}

// run applies faults and throttling, then runs the operation.
func (s *Server) run(rq *wire.Exchange, r *region, call *Call) answer {
	f := s.faults.match(call, rq)
	a := answer{delay: f.realDelay()}
	switch {
	case f.is(FailBefore):
		a.err = &wire.Error{Code: f.Code, Message: f.message(), Status: f.Status}
	case f.is(CutBefore):
		a.cut = true
	case f.is(Conflict):
		a.err = rq.Service.Conflict(rq, f.Resource)
	case f.is(Throttled) || s.throttle && !s.spend(rq, call):
		a.err = rq.Service.Dialect.Throttled(rq.Operation.Name)
	case f.is(StaleRead) && rq.Operation.Effect == wire.Reads:
		a.err = s.handleStale(rq, r)
	default:
		if rq.Operation.Effect == wire.Writes && s.faults.wantsSnapshots() {
			s.keepSnapshot(r)
		}
		a.err = rq.Handle()
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
		e := wire.AsError(err, wire.Dialect{})
		call.ErrorCode = e.Code
		var answer *wire.Error
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
	return world.UUID(world.Hash(fmt.Sprintf("request|%d", s.requests), 32))
}

// writeAnswer sends the answer in the service's protocol.
func writeAnswer(logger *slog.Logger, w http.ResponseWriter, rq *wire.Exchange, err error) {
	w.Header().Set("X-Amzn-Requestid", rq.ID)
	status := http.StatusOK
	var body []byte
	if err != nil {
		e := wire.AsError(err, rq.Service.Dialect)
		status = rq.Service.Status(e)
		body = rq.ErrorBody(w.Header(), e)
	} else {
		body = rq.AnswerBody(w.Header())
	}
	if rq.Service.Checksums {
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		logger.Debug("write answer", slog.Any("error", err))
	}
}
