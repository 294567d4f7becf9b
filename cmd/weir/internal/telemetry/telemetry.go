// Package telemetry sends spans to an OpenTelemetry collector over OTLP/HTTP. OpenTelemetry's own
// environment variables configure it. It does nothing unless OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
)

// Options configures Open.
type Options struct {
	// Instance and Version describe this process.
	Instance, Version string
	// Redact is applied to every text that is sent.
	Redact func(string) string
	Logger *slog.Logger
}

// Tracing creates root spans. Its zero value creates none.
type Tracing struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
}

// Open reads the environment. It opens no connection: if a collector does not answer, a failure is logged
// when spans are sent, and the spans are dropped.
func Open(ctx context.Context, o Options) (*Tracing, error) {
	settings, err := readEnvironment()
	if err != nil || settings == nil {
		return &Tracing{}, err
	}
	exporter, err := otlptrace.New(ctx, newClient(*settings, o))
	if err != nil {
		return nil, fmt.Errorf("open tracing: %w", err)
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", "weir"), attribute.String("service.version", o.Version)}
	if o.Instance != "" {
		attributes = append(attributes, attribute.String("service.instance.id", o.Instance))
	}
	// The environment overrides weir's own attributes.
	described, err := resource.New(ctx, resource.WithAttributes(attributes...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("open tracing: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	o.Logger.Info("spans are sent", "endpoint", settings.shown())
	return &Tracing{tracer: provider.Tracer(span.Scope), provider: provider}, nil
}

// Tracer returns a tracer for root spans.
func (t *Tracing) Tracer() trace.Tracer {
	if t.tracer == nil {
		return noop.NewTracerProvider().Tracer(span.Scope)
	}
	return t.tracer
}

// Past records a root span that has just ended and took the given time.
func (t *Tracing) Past(ctx context.Context, name string, took time.Duration, err error, pairs ...string) {
	if t.tracer == nil {
		return
	}
	_, s := t.tracer.Start(ctx, name, trace.WithNewRoot(), trace.WithTimestamp(time.Now().Add(-took)), trace.WithAttributes(span.Attributes(pairs...)...))
	span.End(s, err)
}

// Close sends the remaining spans.
func (t *Tracing) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Forge returns f with a span around each write of a commit status.
func (t *Tracing) Forge(f commits.Forge) commits.Forge {
	if t.tracer == nil {
		return f
	}
	return tracedForge{f, t.tracer}
}

type tracedForge struct {
	commits.Forge
	tracer trace.Tracer
}

// SetStatus implements commits.Forge.
func (f tracedForge) SetStatus(ctx context.Context, sha string, s forge.CommitStatus) error {
	ctx, sp := f.tracer.Start(ctx, "status write", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		span.Attributes("forge", f.Profile().Label, "revision", sha, "context", s.Context, "state", string(s.State))...))
	err := f.Forge.SetStatus(ctx, sha, s)
	span.End(sp, err)
	return err
}
