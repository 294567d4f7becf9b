// Package checked is imported by tests for its effect: it checks every request that weir makes to
// AWS in them against AWS's own service models before the request is sent, for every Cloud and
// every endpoint. A request with an unknown member, without a required one, or with a value that
// breaks a limit ends the process, so that the tests fail even if weir would ignore an error.
package checked

import (
	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu/model/modeltest"
)

func init() {
	sdk.Around = func(next httpbody.Doer) httpbody.Doer {
		return &modeltest.Client{Next: next, Request: func(err error) { panic(err) }}
	}
}
