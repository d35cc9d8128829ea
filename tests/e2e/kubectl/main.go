// Command kubectl is the real kubectl, built from its published modules.
//
// The tests drive what users have, at a version that go.sum pins, and need nothing installed
// but a Go toolchain.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	// Without these kubectl cannot log in where a kubeconfig asks for a plugin; the real one has them.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
