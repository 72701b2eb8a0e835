// Command kubernetes is the control plane of one Kubernetes version: API server, controller manager
// and scheduler. Which one runs is the base name the binary was called by, or else its first argument.
// One source for all versions; what each is made of is pinned under versions/.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func part(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	}
	return nil
}

func main() {
	command := part(filepath.Base(os.Args[0]))
	if command == nil && len(os.Args) > 1 {
		command = part(os.Args[1])
		os.Args = os.Args[1:]
	}
	if command == nil {
		fmt.Fprintln(os.Stderr, "usage: kubernetes kube-apiserver|kube-controller-manager|kube-scheduler [ARGUMENT...]")
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
