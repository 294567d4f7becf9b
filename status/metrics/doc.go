// Package metrics keeps weir's Prometheus metrics. Labels come from the configuration
// and the program alone, so that neither Git nor AWS can make series without end.
package metrics
