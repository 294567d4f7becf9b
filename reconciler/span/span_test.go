package span_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-gitops/weir/reconciler/span"
)

// Watch tells the time of each span once, traced or not, and leaves tracing as it is.
func TestWatch(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer(span.Scope)
	for name, traced := range map[string]bool{"traced": true, "not traced": false} {
		t.Run(name, func(t *testing.T) {
			var told []string
			ctx := span.Watch(t.Context(), func(name string, took time.Duration) {
				if took < 0 {
					t.Errorf("%s took %s", name, took)
				}
				told = append(told, name)
			})
			if traced {
				traced, root := tracer.Start(ctx, "root")
				defer root.End()
				ctx = traced
			}
			outer, s := span.Start(ctx, "outer", "target", "prod")
			_, inner := span.Start(outer, "inner")
			span.End(inner, errors.New("refused"))
			span.End(s, nil)
			if want := []string{"inner", "outer"}; !slices.Equal(told, want) {
				t.Errorf("told of %v, want %v", told, want)
			}
		})
	}
	var ended []string
	for _, s := range recorder.Ended() {
		ended = append(ended, s.Name())
	}
	if want := []string{"inner", "outer", "root"}; !slices.Equal(ended, want) {
		t.Errorf("traced %v, want %v", ended, want)
	}
}

func TestNobodyWatches(t *testing.T) {
	ctx, s := span.Start(t.Context(), "work")
	span.End(s, nil)
	if ctx != t.Context() || s.IsRecording() {
		t.Error("a span that nobody wants is something")
	}
}
