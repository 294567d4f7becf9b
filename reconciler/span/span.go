// Package span marks stretches of work for tracing. A span is made by the tracer
// of the span around it, so nothing has to be handed down but the context, and without
// tracing a span is nothing and costs nothing.
package span

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of weir's spans.
const Scope = "github.com/weir-gitops/weir"

type watcherKey struct{}

// Watch calls observe for every span that begins below the returned context, when it
// ends: its name and how long it took. It makes no difference whether the span is
// traced. Observe is called from several goroutines.
func Watch(ctx context.Context, observe func(name string, took time.Duration)) context.Context {
	return context.WithValue(ctx, watcherKey{}, observe)
}

// watched tells how long a span took.
type watched struct {
	trace.Span
	name    string
	began   time.Time
	observe func(string, time.Duration)
}

// End implements trace.Span.
func (w watched) End(options ...trace.SpanEndOption) {
	w.observe(w.name, time.Since(w.began))
	w.Span.End(options...)
}

// Start begins a span below that of ctx. Attributes come as pairs of key and value.
func Start(ctx context.Context, name string, pairs ...string) (context.Context, trace.Span) {
	around, s := trace.SpanFromContext(ctx), trace.SpanFromContext(context.Background())
	observe, _ := ctx.Value(watcherKey{}).(func(string, time.Duration))
	if around.IsRecording() {
		ctx, s = around.TracerProvider().Tracer(Scope).Start(ctx, name, trace.WithAttributes(Attributes(pairs...)...))
	}
	if observe != nil {
		s = watched{s, name, time.Now(), observe}
	}
	return ctx, s
}

// Attributes makes attributes of pairs of key and value. Those without a value
// are left out.
func Attributes(pairs ...string) []attribute.KeyValue {
	var out []attribute.KeyValue
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, attribute.String("weir."+pairs[i], pairs[i+1]))
		}
	}
	return out
}

// End ends a span, as failed if err is not nil.
func End(s trace.Span, err error) {
	if err != nil {
		s.SetStatus(codes.Error, err.Error())
	}
	s.End()
}
