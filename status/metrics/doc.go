// Package metrics defines weir's Prometheus metrics. Labels come only from the configuration and the
// program, so that neither Git nor AWS can create an unlimited number of series.
package metrics
