package main

import (
	"context"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud"
)

// credentialsHint is the remedy if an account cannot be opened.
const credentialsHint = "set credentials of the account as for the AWS CLI, or add --role-arn; check them with aws sts get-caller-identity"

// openAccount opens an account and region for a command that works without a configuration. The caller closes the client.
func (s surroundings) openAccount(ctx context.Context, key reconciler.ScopeKey) (*awscloud.Cloud, error) {
	o := accounts.New(accounts.Options{Logger: s.quiet(), Getenv: s.getenv}).Options(key)
	cloud, err := awscloud.Open(ctx, o)
	if err != nil {
		return nil, hinted(err, credentialsHint)
	}
	return cloud, nil
}
