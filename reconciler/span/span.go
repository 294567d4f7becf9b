// Package span marks sections of work for tracing. A span is made by the tracer of the surrounding span, so
// only the context is passed on. Without tracing, a span costs nothing.
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

// Watch calls observe with the name and duration of every span that starts below the returned context, when
// it ends, whether the span is traced or not. observe is called from several goroutines.
func Watch(ctx context.Context, observe func(name string, took time.Duration)) context.Context {
	return context.WithValue(ctx, watcherKey{}, observe)
}

// watched is a span that reports its duration.
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

// Start starts a span below the span of ctx. pairs are the keys and values of attributes.
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

// Attributes makes attributes from pairs of keys and values. It leaves out pairs with an empty value.
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
