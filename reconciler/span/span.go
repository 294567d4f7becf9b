// Package span marks stretches of work for tracing. A span is made by the tracer
// of the span around it, so nothing has to be handed down but the context, and
// where nobody traces a span is nothing and costs nothing.
package span

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of weir's spans.
const Scope = "github.com/weir-gitops/weir"

// Start begins a span below that of ctx. Attributes come as pairs of key and value.
func Start(ctx context.Context, name string, pairs ...string) (context.Context, trace.Span) {
	around := trace.SpanFromContext(ctx)
	if !around.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return around.TracerProvider().Tracer(Scope).Start(ctx, name, trace.WithAttributes(Attributes(pairs...)...))
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
