// Clients are programs as they are written against Kubernetes, on current client-go and
// controller-runtime, that judge the API server which they are pointed at: a kube-apiserver, ours, or
// any other. Nothing in them knows which one it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"holdfast.example/tests/clients/check"
	"holdfast.example/tests/clients/checks/expiry"
	"holdfast.example/tests/clients/checks/informers"
	"holdfast.example/tests/clients/checks/watches"
)

// checks in the order in which they begin: first the one that takes longest, because it waits.
var checks = []check.Check{
	expiry.Check,
	informers.ConfigMaps,
	informers.Pods,
	watches.Check,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "file that names the server (default: $KUBECONFIG)")
	pick := flag.String("run", "", "regular expression: only checks whose names match")
	list := flag.Bool("list", false, "print the names of the checks and end")
	seed := flag.Uint64("seed", 1, "what the writers' random choices begin with")
	parallel := flag.Int("parallel", 3, "how many checks run at the same time")
	patience := flag.Duration("timeout", 3*time.Minute, "the most that a check may take")
	age := flag.Duration("history-age", 80*time.Second,
		"how long the server may keep each change, however many there are")
	logs := flag.Bool("logs", false, "show what client-go logs")
	flag.Parse()

	picked, err := regexp.Compile(*pick)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *list {
		for _, check := range checks {
			fmt.Println(check.Name)
		}
		return nil
	}
	if !*logs {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = *kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	printer := &check.Printer{Out: os.Stdout}
	suite := check.Suite{
		Checks:     checks,
		Pick:       picked,
		Parallel:   *parallel,
		Patience:   *patience,
		HistoryAge: *age,
		Seed:       *seed,
		Config:     config,
		Printer:    printer,
	}
	began := time.Now()
	fmt.Printf("seed %d, server %s\n", *seed, config.Host)
	suite.Run(ctx)
	ok, failed := printer.Counts()
	fmt.Printf("%d ok, %d failed in %.0f s\n", ok, failed, time.Since(began).Seconds())
	switch {
	case failed > 0:
		return fmt.Errorf("%d failed", failed)
	case ok == 0:
		return fmt.Errorf("no check is named like %q", *pick)
	}
	return nil
}
