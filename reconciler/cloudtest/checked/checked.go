// Package checked is imported by tests for its effect: every request that weir
// makes to AWS in them, whoever opened the Cloud and whatever answers, is held
// against AWS's own service models before it is sent. One with a member that the
// operation does not have, without a required one, or with a value that breaks a
// limit ends the process, so that the tests fail even where weir would pass over
// an error.
package checked

import (
	"github.com/weir-gitops/weir/reconciler/awscloud/plainbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu/model/modeltest"
)

func init() {
	sdk.Around = func(next plainbody.Doer) plainbody.Doer {
		return &modeltest.Client{Next: next, Request: func(err error) { panic(err) }}
	}
}
